import { Context } from '@temporalio/activity';
import { Failure } from '../contract/failures.ts';
import { liveUsage, warehouseNow } from '../db/due.ts';
import { handOver } from '../db/settle.ts';
import type { WaitingReason } from '../db/stale.ts';
import { type RecordsRead, writeDocumentSets } from '../db/write/document-sets.ts';
import type { RecordAnswer } from '../service/client.ts';
import type { Page } from '../service/page.ts';
import type { PageManifest } from '../service/stability.ts';
import { walkPages } from '../service/walk.ts';
import { noteFields, write } from './arrival.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { eachAlone } from './own-trouble.ts';
import { readWhole } from './read-whole.ts';

/** Documents that are read, and written, together. */
const documentsPerWrite = 50;

type SingleEndpoint = 'document' | 'documentUsage';

/**
 * What a worker learnt of the endpoints of single documents. A 404 alone tells little: the document may be gone, or the
 * service may have no such endpoint, whatever the catalogue says.
 */
export interface EndpointsTried {
  /** Those that answered 404 for a document that the service has. */
  readonly missing: Set<SingleEndpoint>;
  /** Those that have answered well. */
  readonly working: Set<SingleEndpoint>;
}

export interface SingleReads {
  readonly deps: ActivityDependencies;
  readonly tried: EndpointsTried;
  readonly companyId: string;
  /** Documents that could not be read, or whose usage could not, while others could; and why. */
  readonly failed: Map<string, WaitingReason>;
  /** When the reading began, by the warehouse's clock. */
  readonly readAt: string;
  /** Documents that another company has by now, which catches up on them. */
  readonly moved: Set<string>;
}

/** Whether the service has the endpoint, as far as is known. */
export function has({ deps, tried }: SingleReads, endpoint: SingleEndpoint): boolean {
  return deps.service.has(endpoint) && !tried.missing.has(endpoint);
}

/**
 * Reads documents by their ids, and their usage where documents have a listing of it: each is written with its usage
 * in one transaction. Returns the ids that the service does not have, those whose usage is still to be read, and those
 * of whose usage not all was shown.
 */
export async function readOneByOne(
  reads: SingleReads,
  ids: readonly string[],
): Promise<{ notFound: string[]; withoutUsage: string[]; partial: string[] }> {
  const { deps, tried, companyId } = reads;
  const notFound: string[] = [];
  const withoutUsage: string[] = [];
  const partial: string[] = [];
  for (const [at, some] of batches(ids).entries()) {
    const readAt = at === 0 ? reads.readAt : await warehouseNow(deps.warehouse.db);
    // Where both endpoints are known to work, a document and its usage are asked for at once.
    const together = tried.working.has('document') && tried.working.has('documentUsage');
    const early = together && has(reads, 'documentUsage') ? readUsageOf(reads, some) : undefined;
    early?.catch(() => {});
    const records = await eachAlone(
      deps,
      reads.failed,
      some,
      (id) => readRecord(reads, id),
      () => tried.working.has('document'),
    );
    const found = some.filter((id) => records.get(id) !== undefined);
    notFound.push(...some.filter((id) => records.has(id) && records.get(id) === undefined));
    if (found.length === 0) continue;
    const answers = [...records.values()].filter((record) => record !== undefined);
    const bodies = answers.map(({ body }) => body);
    const items = answers.map(({ value }) => value);
    const page = { body: `[${bodies.join(',')}]`, itemsKey: '', joined: true };
    const usage = has(reads, 'documentUsage') ? await usageOf(reads, found, early) : undefined;
    if (usage !== undefined) {
      const asked = { companyId, byId: true, readAt, apiVersion: deps.apiVersion };
      const documents = { page: { ...page, ...asked }, ids: found };
      partial.push(...(await writeSets(reads, readAt, usage, documents)));
      await noteFields(deps, 'documents', items);
    } else {
      const arrival = {
        listing: 'documents',
        companyId,
        byId: true,
        readAt,
        page: { ...page, ids: found, items },
      } as const;
      await write(deps, { ...arrival, usage: 'all' });
      withoutUsage.push(...found);
    }
    for (const id of await handOver(deps.warehouse.db, companyId, found)) reads.moved.add(id);
  }
  const here = (id: string): boolean => !reads.moved.has(id);
  return { notFound, withoutUsage: withoutUsage.filter(here), partial: partial.filter(here) };
}

/**
 * Reads the usage of documents that are written already. Returns those that have no listing of their own for it, and
 * those of whose usage not all was shown.
 */
export async function readUsageOneByOne(
  reads: SingleReads,
  ids: readonly string[],
): Promise<{ left: readonly string[]; partial: readonly string[] }> {
  let left = ids;
  const partial: string[] = [];
  for (const some of batches(ids)) {
    const readAt = await warehouseNow(reads.deps.warehouse.db);
    const usage = await readUsageOf(reads, some);
    if (usage === undefined) break;
    partial.push(...(await writeSets(reads, readAt, usage)));
    left = left.slice(some.length);
  }
  return { left, partial };
}

type FoundRecord = Extract<RecordAnswer, { found: true }>;

async function readRecord({ deps, tried }: SingleReads, id: string): Promise<FoundRecord | undefined> {
  const signal = Context.current().cancellationSignal;
  const answer = await deps.service.record({ endpoint: 'document', params: { id }, lane: 'live', signal });
  if (!answer.found) return undefined;
  tried.working.add('document');
  return answer;
}

/** The usage of documents that were found, of that which was asked for with them if there is any. */
async function usageOf(
  reads: SingleReads,
  found: readonly string[],
  early: ReturnType<typeof readUsageOf> | undefined,
): ReturnType<typeof readUsageOf> {
  const usage = await early;
  if (usage === undefined) return await readUsageOf(reads, found);
  return new Map([...usage].filter(([id]) => found.includes(id)));
}

/** What was shown of a document's usage, and whether that is all there is of it. */
interface UsageRead {
  readonly pages: readonly Page[];
  readonly whole: boolean;
}

/** The usage of each document, by its id; undefined when documents turn out to have no such listing. */
async function readUsageOf(
  reads: SingleReads,
  ids: readonly string[],
): Promise<ReadonlyMap<string, UsageRead> | undefined> {
  const { deps, tried, failed } = reads;
  const known = await liveUsage(deps.warehouse.db, ids);
  const answers = await eachAlone(
    deps,
    failed,
    ids,
    (id) => readWhole(known.get(id.toLowerCase()) ?? [], () => usagePass(reads, id)),
    () => tried.working.has('documentUsage'),
  );
  const [answered] = answers.keys();
  if ([...answers.values()].some(({ pass }) => pass !== undefined)) tried.working.add('documentUsage');
  else if (answered !== undefined && !(await isGone(reads, answered))) {
    tried.missing.add('documentUsage');
    return undefined;
  }
  return new Map(
    ids.map((id) => {
      const { pass, whole = false } = answers.get(id) ?? {};
      return [id, { pages: pass?.pages ?? [], whole }];
    }),
  );
}

/** One pass over a document's usage; undefined when there is none to be found. */
async function usagePass(
  { deps }: SingleReads,
  id: string,
): Promise<{ pages: readonly Page[]; manifest: readonly PageManifest[] } | undefined> {
  const signal = Context.current().cancellationSignal;
  const endpoint = 'documentUsage';
  const walk = walkPages({ client: deps.service, endpoint, params: { id }, lane: 'live', signal });
  const pages: Page[] = [];
  try {
    for await (const page of walk) pages.push(page);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'SERVICE_NOT_FOUND') throw error;
    if (pages.length === 0) return undefined;
  }
  return { pages, manifest: walk.report().manifest };
}

/** Whether documents without usage went since they were read, rather than that usage has no such endpoint. */
async function isGone(reads: SingleReads, id: string): Promise<boolean> {
  if (reads.tried.working.has('documentUsage')) return true;
  if (!reads.tried.working.has('document')) return false;
  return (await readRecord(reads, id)) === undefined;
}

/** Returns the documents of whose usage not all was shown: nothing of that is gone. */
async function writeSets(
  { deps, companyId }: SingleReads,
  readAt: string,
  usage: ReadonlyMap<string, UsageRead>,
  documents?: RecordsRead,
): Promise<string[]> {
  const documentIds = [...usage.keys()];
  const partialIds = documentIds.filter((id) => usage.get(id)?.whole !== true);
  const pages = [...usage.values()].flatMap((read) => read.pages);
  const page = {
    body: `[${pages.map(({ body }) => body).join(',')}]`,
    itemsKey: pages[0]?.itemsKey ?? null,
    joined: true,
    companyId,
    byId: true,
    readAt,
    apiVersion: deps.apiVersion,
    documentOf: documentsOf(usage),
  };
  const rows = { page, ids: pages.flatMap(({ ids }) => ids) };
  const written = rows.ids.length === 0 ? undefined : rows;
  await writeDocumentSets(deps.warehouse.db, { documentIds, partialIds, readAt, documents, usage: written });
  for (const { items } of pages) await noteFields(deps, 'usageData', items);
  return partialIds;
}

/** Rows that stand in a document's own listing need not name it. */
function documentsOf(usage: ReadonlyMap<string, UsageRead>): Record<string, string> {
  const listed = [...usage].flatMap(([id, { pages }]) =>
    pages.flatMap((page) => page.ids.map((row) => [row, id] as const)),
  );
  return Object.fromEntries(listed.filter(([row]) => row !== null));
}

function batches(ids: readonly string[]): string[][] {
  const count = Math.ceil(ids.length / documentsPerWrite);
  return Array.from({ length: count }, (_, at) =>
    ids.slice(at * documentsPerWrite, (at + 1) * documentsPerWrite),
  );
}
