import { Context } from '@temporalio/activity';
import { Failure } from '../../contract/failures.ts';
import { limits } from '../../contract/limits.ts';
import { liveUsage, warehouseNow } from '../../db/catch-up/due.ts';
import { moveToCompany } from '../../db/catch-up/settle.ts';
import type { WaitingReason } from '../../db/catch-up/stale.ts';
import { writeDocumentSets } from '../../db/records/document-sets.ts';
import type { RecordAnswer } from '../../service/client.ts';
import type { Page } from '../../service/page.ts';
import type { PageManifest } from '../../service/stability.ts';
import { walkPages } from '../../service/walk.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { settleEach } from '../own-failure.ts';
import { noteFields, write } from '../reading/page-write.ts';
import { readUntilProven } from '../reading/read-until-proven.ts';

/** Documents that are read and written together. */
const documentsPerWrite = 50;

type SingleEndpoint = 'document' | 'documentUsage';

/**
 * What this worker found out about the endpoints of single documents. A 404 alone is ambiguous: the document
 * may be gone, or the service may lack the endpoint in spite of the catalogue.
 */
export interface EndpointsTried {
  /** Those that answered 404 for a record that the service has. */
  readonly missing: Set<SingleEndpoint>;
  /** Those that have answered 200. */
  readonly working: Set<SingleEndpoint>;
}

export interface SingleReads {
  readonly deps: ActivityDependencies;
  readonly tried: EndpointsTried;
  readonly companyId: string;
  /** Why a document, or its usage, could not be read while others could; by id. */
  readonly failed: Map<string, WaitingReason>;
  /** When the reading began, by the warehouse's clock. */
  readonly readAt: string;
  /** Documents that moved to another company, whose catch-up reads them. */
  readonly moved: Set<string>;
}

/** Whether the catalogue has the endpoint, and no answer has proved it missing. */
export function has({ deps, tried }: SingleReads, endpoint: SingleEndpoint): boolean {
  return deps.service.has(endpoint) && !tried.missing.has(endpoint);
}

/** Documents whose own usage listing did not decide what usage they have. */
interface UsageAsked {
  /** Those without such a listing, where that does not prove that they have no usage. */
  readonly unlisted: string[];
  /** Those whose usage was incomplete. */
  readonly partial: string[];
}

/**
 * Reads documents by their ids, and their usage where the service has that endpoint. Writes each document
 * with its usage in one transaction. Returns the ids that were not found, were refused, or whose usage is
 * still to be read.
 */
export async function readOneByOne(
  reads: SingleReads,
  ids: readonly string[],
): Promise<
  UsageAsked & {
    readonly notFound: string[];
    readonly refused: string[];
    readonly withoutUsage: string[];
  }
> {
  const { deps, tried, companyId } = reads;
  const notFound: string[] = [];
  const refused: string[] = [];
  const withoutUsage: string[] = [];
  const asked: UsageAsked = { unlisted: [], partial: [] };
  for (const [at, batch] of batches(ids).entries()) {
    const readAt = at === 0 ? reads.readAt : await warehouseNow(deps.warehouse.db);
    // Where both endpoints have worked, a document and its usage are requested at once.
    const together = tried.working.has('document') && tried.working.has('documentUsage');
    const early = together && has(reads, 'documentUsage') ? readUsageOf(reads, batch) : undefined;
    early?.catch(() => {});
    const records = await settleEach(
      deps,
      reads.failed,
      batch,
      (id) => readRecord(reads, id),
      // The company's listing is read next: it proves whether the key may see the company.
      (code) =>
        tried.working.has('document') || (code === 'SERVICE_ACCESS_DENIED' && deps.service.has('documents')),
    );
    const found = batch.filter((id) => records.get(id) !== undefined);
    notFound.push(...batch.filter((id) => records.has(id) && records.get(id) === undefined));
    refused.push(...batch.filter((id) => !records.has(id) && isRefused(reads, id)));
    if (found.length === 0) continue;
    const read = { readAt, records };
    if (!has(reads, 'documentUsage')) {
      await writeRecords(reads, read, found);
      withoutUsage.push(...found);
    } else {
      const usage = (await early) ?? (await readUsageOf(reads, found));
      const unlisted = found.filter((id) => usage.get(id)?.unlisted === true);
      const listed = found.filter((id) => !unlisted.includes(id));
      await writeSets(reads, read, pick(usage, listed));
      await writeRecords(reads, read, unlisted);
      noteAsked(asked, pick(usage, found));
    }
    for (const id of await moveToCompany(deps.warehouse.db, companyId, found)) reads.moved.add(id);
  }
  const here = (id: string): boolean => !reads.moved.has(id);
  return {
    notFound,
    refused,
    withoutUsage: withoutUsage.filter(here),
    unlisted: asked.unlisted.filter(here),
    partial: asked.partial.filter(here),
  };
}

const isRefused = ({ failed }: SingleReads, id: string): boolean =>
  failed.get(id)?.code === 'SERVICE_RECORD_REFUSED';

/** Reads and writes the usage of documents that were written before. */
export async function readUsageOneByOne(reads: SingleReads, ids: readonly string[]): Promise<UsageAsked> {
  const asked: UsageAsked = { unlisted: [], partial: [] };
  for (const batch of batches(ids)) {
    const readAt = await warehouseNow(reads.deps.warehouse.db);
    const usage = await readUsageOf(reads, batch);
    const listed = batch.filter((id) => usage.get(id)?.unlisted !== true);
    await writeSets(reads, { readAt }, pick(usage, listed));
    noteAsked(asked, usage);
  }
  return asked;
}

function noteAsked(asked: UsageAsked, usage: ReadonlyMap<string, UsageRead>): void {
  for (const [id, { complete, unlisted }] of usage) {
    if (!complete) asked[unlisted ? 'unlisted' : 'partial'].push(id);
  }
}

type FoundRecord = Extract<RecordAnswer, { found: true }>;

async function readRecord({ deps, tried }: SingleReads, id: string): Promise<FoundRecord | undefined> {
  const signal = Context.current().cancellationSignal;
  const answer = await deps.service.record({ endpoint: 'document', params: { id }, lane: 'live', signal });
  if (!answer.found) return undefined;
  tried.working.add('document');
  return answer;
}

/** A document's usage as it was read. */
interface UsageRead {
  readonly pages: readonly Page[];
  /** Whether the pages contain all usage of the document. */
  readonly complete: boolean;
  /** Whether the document has no usage listing. */
  readonly unlisted: boolean;
}

/**
 * Reads the usage of each document, by its id. A listing that is not found means no usage, on two conditions:
 * other documents have a listing, and the warehouse has no usage of this one.
 */
async function readUsageOf(
  reads: SingleReads,
  ids: readonly string[],
): Promise<ReadonlyMap<string, UsageRead>> {
  const { deps, tried, failed } = reads;
  const existing = await liveUsage(deps.warehouse.db, ids);
  const answers = await settleEach(
    deps,
    failed,
    ids,
    (id) => readUntilProven(existing.get(id) ?? [], () => usagePass(reads, id)),
    // The document or its listing was read before, so a 403 is about this document alone.
    (code) => tried.working.has('documentUsage') || code === 'SERVICE_ACCESS_DENIED',
  );
  if ([...answers.values()].some(({ pass }) => pass !== undefined)) tried.working.add('documentUsage');
  const works = tried.working.has('documentUsage');
  return new Map(
    ids.map((id) => {
      const answer = answers.get(id);
      const unlisted = answer !== undefined && answer.pass === undefined;
      const complete = unlisted ? works && !existing.has(id) : answer?.proven === true;
      return [id, { pages: answer?.last?.pages ?? [], complete, unlisted }];
    }),
  );
}

/** Makes one pass over a document's usage; undefined if the listing is not found. */
async function usagePass(
  { deps }: SingleReads,
  id: string,
): Promise<{ pages: readonly Page[]; manifest: readonly PageManifest[] } | undefined> {
  const signal = Context.current().cancellationSignal;
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

/** Found records by id, and the time before the first request. */
interface Found {
  readonly readAt: string;
  readonly records: ReadonlyMap<string, FoundRecord | undefined>;
}

/** Writes documents, with the usage that their records contain. */
async function writeRecords(reads: SingleReads, found: Found, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const { deps, companyId } = reads;
  const { page, items } = recordsPage(found, ids);
  const { readAt } = found;
  const arrival = { listing: 'documents', companyId, byId: true, readAt, usage: 'all' } as const;
  await write(deps, { ...arrival, page: { ...page, ids, items } });
}

/**
 * Writes the given records and the usage of documents. Tombstones missing usage rows only where usage is
 * complete.
 */
async function writeSets(
  { deps, companyId }: SingleReads,
  { readAt, records }: Pick<Found, 'readAt'> & Partial<Found>,
  usage: ReadonlyMap<string, UsageRead>,
): Promise<void> {
  if (usage.size === 0) return;
  const documentIds = [...usage.keys()];
  const source = { companyId, byId: true, readAt, apiVersion: deps.apiVersion };
  const read = records === undefined ? undefined : recordsPage({ readAt, records }, documentIds);
  const pages = [...usage.values()].flatMap((usageRead) => usageRead.pages);
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
    partialIds: documentIds.filter((id) => usage.get(id)?.complete !== true),
    readAt,
    documents: read === undefined ? undefined : { page: { ...read.page, ...source }, ids: documentIds },
    usage: rows.ids.length === 0 ? undefined : rows,
  });
  if (read !== undefined) await noteFields(deps, 'documents', read.items);
  for (const { items } of pages) await noteFields(deps, 'usageData', items);
}

/** Joins records of single answers into one page. */
function recordsPage({ records }: Found, ids: readonly string[]) {
  const answers = ids.flatMap((id) => records.get(id) ?? []);
  const body = `[${answers.map((answer) => answer.body).join(',')}]`;
  return { page: { body, itemsKey: '', joined: true }, items: answers.map(({ value }) => value) };
}

/** Maps each usage row to the document whose listing contains it: the row itself need not name it. */
function documentsOf(usage: ReadonlyMap<string, UsageRead>): Record<string, string> {
  const listed = [...usage].flatMap(([id, { pages }]) =>
    pages.flatMap((page) => page.ids.map((row) => [row, id] as const)),
  );
  return Object.fromEntries(listed.filter(([row]) => row !== null));
}

const pick = (usage: ReadonlyMap<string, UsageRead>, ids: readonly string[]): Map<string, UsageRead> =>
  new Map([...usage].filter(([id]) => ids.includes(id)));

function batches(ids: readonly string[]): string[][] {
  const count = Math.ceil(ids.length / documentsPerWrite);
  return Array.from({ length: count }, (_, at) =>
    ids.slice(at * documentsPerWrite, (at + 1) * documentsPerWrite),
  );
}
