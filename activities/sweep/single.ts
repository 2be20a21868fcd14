import type { SingleEndpoint } from '../../contract/endpoints.ts';
import { Failure, type WaitingReason } from '../../contract/failures.ts';
import { limits } from '../../contract/limits.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { printedUuids } from '../../db/connection/arrays.ts';
import { moveToCompany } from '../../db/events/settle.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { usageUnstable } from '../../db/queue/postpone.ts';
import { liveUsage } from '../../db/records/usage.ts';
import { writeDocumentSets } from '../../db/records/write-page.ts';
import type { RecordAnswer } from '../../service/client.ts';
import type { Page } from '../../service/page.ts';
import { confirmsPass, judgePass, type PageManifest } from '../../service/stability.ts';
import { walkPages } from '../../service/walk.ts';
import { cancellation } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { settleEach } from '../own-failure.ts';
import { noteFields, write } from '../reading/page-write.ts';

/** Documents that are read and written together. */
const documentsPerWrite = 50;

export interface SingleReads {
  readonly deps: ActivityDependencies;
  readonly companyId: string;
  /** When the reading began, by the warehouse's clock. */
  readonly readAt: string;
  /** Endpoints that are not used because their gate is closed. */
  readonly closed: Set<SingleEndpoint>;
  /** Records that events deleted: they are not shown if the service has deleted them. */
  readonly deleted: ReadonlySet<string>;
  /** The number of the probe of the company's gate that this read is; 0 if its gate is open. */
  readonly probe: number;
}

/**
 * How far a document was read.
 * - `read`: it and all of its usage are in the warehouse.
 * - `withoutUsage`: its usage is still to be read.
 * - `unlisted`: its usage has no listing of its own, which does not prove that there is none.
 * - `unseen`: the service did not return it.
 * - `moved`: it belongs to another company now, whose catch-up reads it.
 * - A reason: it, or all of its usage, could not be read while others could.
 */
export type DocumentState = 'read' | 'withoutUsage' | 'unlisted' | 'unseen' | 'moved' | WaitingReason;
export type DocumentStates = ReadonlyMap<string, DocumentState>;

export const inState = (states: DocumentStates, wanted: DocumentState): string[] =>
  [...states].flatMap(([id, state]) => (state === wanted ? [id] : []));

/** Whether the endpoint file names the endpoint, and its gate is open. */
export const has = ({ deps, closed }: SingleReads, endpoint: SingleEndpoint): boolean =>
  deps.service.has(endpoint) && !closed.has(endpoint);

/** Reads documents by their ids, and their usage if that has an endpoint. Writes each in one transaction. */
export async function readOneByOne(reads: SingleReads, ids: readonly string[]): Promise<DocumentStates> {
  return await inBatches(ids, async (batch, at) => {
    const readAt = at === 0 ? reads.readAt : await warehouseNow(reads.deps.warehouse.db);
    return await readBatch({ ...reads, readAt }, batch);
  });
}

async function readBatch(reads: SingleReads, ids: readonly string[]): Promise<DocumentStates> {
  const { deps, companyId } = reads;
  const listed = deps.service.has('documents');
  // A document and its usage are requested at the same time.
  const alive = ids.filter((id) => !reads.deleted.has(id));
  const early = has(reads, 'documentUsage') ? readUsageOf(reads, alive) : undefined;
  early?.catch(() => {});
  const { done, failed } = await settleEach(
    deps,
    ids,
    (id) => readRecord(reads, id),
    // The company's listing is read next: it proves whether the key may see the company.
    (found) => listed || found > 0 || (ids.length === 1 && reads.probe === 0),
  );
  const found = new Map([...done].flatMap(([id, record]) => (record ? [[id, record] as const] : [])));
  const states = new Map<string, DocumentState>(failed);
  for (const id of done.keys()) states.set(id, found.has(id) ? 'withoutUsage' : 'unseen');
  if (found.size === 0) return states;
  if (has(reads, 'documentUsage')) {
    const usage = pick((await early) ?? (await readUsageOf(reads, [...found.keys()])), found);
    const [listed, unlisted] = [new Map(usage), new Map(found)];
    for (const [id, { pages }] of usage) (pages === undefined ? listed : unlisted).delete(id);
    await writeSets(reads, listed, found);
    await writeRecords(reads, unlisted);
    for (const [id, { state }] of usage) states.set(id, state);
  } else await writeRecords(reads, found);
  for (const id of await moveToCompany(deps.warehouse.db, companyId, [...found.keys()]))
    states.set(id, 'moved');
  return states;
}

/** Reads and writes the usage of documents that were written before. */
export async function readUsageOneByOne(reads: SingleReads, ids: readonly string[]): Promise<DocumentStates> {
  return await inBatches(ids, async (batch) => {
    const readAt = await warehouseNow(reads.deps.warehouse.db);
    const usage = await readUsageOf(reads, batch);
    const listed = new Map([...usage].filter(([, { pages }]) => pages !== undefined));
    await writeSets({ ...reads, readAt }, listed);
    return new Map([...usage].map(([id, { state }]) => [id, state]));
  });
}

/** The answer with a record. */
export type FoundRecord = Extract<RecordAnswer, { found: true }>;

async function readRecord({ deps }: SingleReads, id: string): Promise<FoundRecord | undefined> {
  const signal = cancellation();
  const answer = await deps.service.record({ endpoint: 'document', params: { id }, lane: 'live', signal });
  return answer.found ? answer : undefined;
}

/** Whether the endpoint of single documents has a document. */
export const isFound = async (reads: SingleReads, id: string): Promise<boolean> =>
  (await readRecord(reads, id)) !== undefined;

/** Whether the usage endpoint of single documents has a document. */
export const hasUsage = async (reads: SingleReads, id: string): Promise<boolean> =>
  (await usagePass(reads, id)) !== undefined;

interface UsageRead {
  /** Absent if the document has no usage listing. */
  readonly pages?: readonly Page[];
  readonly state: DocumentState;
}

/** Reads usage by document. A 404 means no usage if other documents have a listing and this one no rows. */
async function readUsageOf(
  reads: SingleReads,
  ids: readonly string[],
): Promise<ReadonlyMap<string, UsageRead>> {
  const { deps } = reads;
  const existing = await liveUsage(deps.warehouse.db, ids);
  const { done, failed } = await settleEach(
    deps,
    ids,
    (id) => readUntilProven(existing.get(id) ?? [], () => usagePass(reads, id)),
    // The document or its listing shows whether the key may see the company.
    () => true,
  );
  const works = [...done.values()].some(({ pass }) => pass !== undefined);
  const read = new Map<string, UsageRead>();
  for (const [id, state] of failed) read.set(id, { pages: [], state });
  for (const [id, { pass, last, proven }] of done) {
    if (pass === undefined) read.set(id, { state: works && !existing.has(id) ? 'read' : 'unlisted' });
    else read.set(id, { pages: last?.pages ?? [], state: proven ? 'read' : usageUnstable });
  }
  return read;
}

/** Makes one pass over a document's usage; undefined if the listing is not found. */
async function usagePass(
  { deps }: SingleReads,
  id: string,
): Promise<{ pages: readonly Page[]; manifest: readonly PageManifest[] } | undefined> {
  const signal = cancellation();
  const endpoint = 'documentUsage';
  const walk = walkPages({ client: deps.service, endpoint, params: { id }, lane: 'live', signal });
  const pages: Page[] = [];
  let characters = 0;
  try {
    for await (const page of walk) {
      characters += page.body.length;
      if (characters > limits.answerBytesMax) throw tooMuchUsage(id);
      pages.push(page);
    }
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'SERVICE_NOT_FOUND') throw error;
    if (pages.length === 0) return undefined;
  }
  return { pages, manifest: walk.report().manifest };
}

/** All usage of a document is written together, so it may be as long as one answer. */
const tooMuchUsage = (id: string): Failure =>
  new Failure(
    'SERVICE_ANSWER_UNREADABLE',
    `the usage of document ${id} is longer than ${limits.answerBytesMax} characters`,
  );

type FoundRecords = ReadonlyMap<string, FoundRecord>;

/** Writes documents, with the usage of which their records are the source. */
async function writeRecords({ deps, companyId, readAt }: SingleReads, found: FoundRecords): Promise<void> {
  if (found.size === 0) return;
  const ids = [...found.keys()];
  const { page, items } = joinedPage(found, ids);
  const arrival = { listing: 'documents', companyId, byId: true, readAt } as const;
  await write(deps, { ...arrival, page: { ...page, ids, items } });
}

/** Writes usage, and its documents if given. Tombstones rows that a document's complete usage lacks. */
async function writeSets(
  { deps, companyId, readAt }: SingleReads,
  usage: ReadonlyMap<string, UsageRead>,
  found?: FoundRecords,
): Promise<void> {
  if (usage.size === 0) return;
  const documentIds = [...usage.keys()];
  const source = { companyId, byId: true, readAt, apiVersion: deps.apiVersion };
  const records = found && joinedPage(found, documentIds);
  const pages = [...usage.values()].flatMap((read) => read.pages ?? []);
  const page = {
    body: `[${pages.map(({ body }) => body).join(',')}]`,
    itemsKey: pages[0]?.itemsKey ?? null,
    joined: true,
    ...source,
    documentOf: documentsOf(usage),
  };
  const rows = { page, ids: pages.flatMap(({ ids }) => ids) };
  await writeDocumentSets(deps.warehouse.db, {
    documentIds,
    partialIds: documentIds.filter((id) => usage.get(id)?.state !== 'read'),
    readAt,
    documents: records && { page: { ...records.page, ...source }, ids: documentIds },
    usage: rows.ids.length === 0 ? undefined : rows,
  });
  if (records !== undefined) await noteFields(deps, 'documents', records.items);
  for (const { items } of pages) await noteFields(deps, 'usageData', items);
}

/** Joins records of single answers into one page. */
export function joinedPage(found: FoundRecords, ids: readonly string[]) {
  const answers = ids.flatMap((id) => found.get(id) ?? []);
  const body = `[${answers.map((answer) => answer.body).join(',')}]`;
  return { page: { body, itemsKey: '', joined: true }, items: answers.map(({ value }) => value) };
}

/** Maps each usage row to the document whose listing has it, because the row may not name the document. */
const documentsOf = (usage: ReadonlyMap<string, UsageRead>): Record<string, string> =>
  Object.fromEntries(
    [...usage].flatMap(([id, { pages = [] }]) =>
      pages.flatMap((page) => page.ids.flatMap((row) => (row === null ? [] : [[row, id]]))),
    ),
  );

const pick = (usage: ReadonlyMap<string, UsageRead>, found: FoundRecords): ReadonlyMap<string, UsageRead> =>
  new Map([...usage].filter(([id]) => found.has(id)));

/** Reads documents in batches, one after the other. */
async function inBatches(
  ids: readonly string[],
  read: (batch: readonly string[], at: number) => Promise<DocumentStates>,
): Promise<DocumentStates> {
  const states: [string, DocumentState][] = [];
  for (let at = 0; at < ids.length; at += documentsPerWrite)
    states.push(...(await read(ids.slice(at, at + documentsPerWrite), at)));
  return new Map(states);
}

interface Pass {
  readonly manifest: readonly PageManifest[];
}

/**
 * Reads a listing until a pass is proven complete. One pass over one page is enough if it is consistent and
 * has all `existing` ids. A listing of several pages needs two stable passes that agree.
 * @returns `pass`: the proven pass, or else the last one. `last`: the pass that confirmed it, perhaps with
 *   more records. Both are undefined if there is no such listing
 */
export async function readUntilProven<P extends Pass>(
  existing: readonly string[],
  read: () => Promise<P | undefined>,
): Promise<{ pass: P | undefined; last: P | undefined; proven: boolean }> {
  let before: P | undefined;
  for (let count = 1; count <= attemptPolicy.passesMax; count++) {
    const now = await read();
    if (now === undefined) return { pass: before, last: before, proven: false };
    if (provesItself(now, existing)) return { pass: now, last: now, proven: true };
    if (before !== undefined && confirmsPass(before.manifest, now.manifest))
      return { pass: before, last: now, proven: true };
    before = now;
  }
  return { pass: before, last: before, proven: false };
}

function provesItself({ manifest }: Pass, existing: readonly string[]): boolean {
  if (manifest.length !== 1 || !judgePass(manifest).stable) return false;
  const listed = new Set(printedUuids(manifest.flatMap(({ ids }) => ids)));
  return existing.every((id) => listed.has(id));
}
