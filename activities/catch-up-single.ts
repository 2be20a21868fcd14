import { Context } from '@temporalio/activity';
import { Failure } from '../contract/failures.ts';
import { warehouseNow } from '../db/catch-up.ts';
import { type RecordsRead, writeDocumentSets } from '../db/write/document-sets.ts';
import type { RecordAnswer } from '../service/client.ts';
import type { Page } from '../service/page.ts';
import { walkPages } from '../service/walk.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { noteFields, write } from './listing.ts';

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
}

/** Whether the service has the endpoint, as far as is known. */
export function has({ deps, tried }: SingleReads, endpoint: SingleEndpoint): boolean {
  return deps.service.has(endpoint) && !tried.missing.has(endpoint);
}

/**
 * Reads documents by their ids, and their usage where documents have a listing of it: each is written with its usage
 * in one transaction. Returns the ids that the service does not have, and those whose usage is still to be read.
 */
export async function readOneByOne(
  reads: SingleReads,
  ids: readonly string[],
): Promise<{ notFound: string[]; withoutUsage: string[] }> {
  const { deps, companyId } = reads;
  const notFound: string[] = [];
  const withoutUsage: string[] = [];
  for (const some of batches(ids)) {
    const readAt = await warehouseNow(deps.warehouse.db);
    const records = await Promise.all(some.map((id) => readRecord(reads, id)));
    const found = some.filter((_, at) => records[at] !== undefined);
    notFound.push(...some.filter((_, at) => records[at] === undefined));
    if (found.length === 0) continue;
    const answers = records.filter((record) => record !== undefined);
    const bodies = answers.map(({ body }) => body);
    const items = answers.map(({ value }) => value);
    const page = { body: `[${bodies.join(',')}]`, itemsKey: '', joined: true };
    const usage = has(reads, 'documentUsage') ? await readUsageOf(reads, found) : undefined;
    if (usage !== undefined) {
      const documents = { page: { ...page, companyId, readAt, apiVersion: deps.apiVersion }, ids: found };
      await writeSets(reads, found, readAt, usage, documents);
      await noteFields(deps, 'documents', items);
    } else {
      const arrival = {
        listing: 'documents',
        companyId,
        readAt,
        page: { ...page, ids: found, items },
      } as const;
      await write(deps, { ...arrival, usage: 'all' });
      withoutUsage.push(...found);
    }
  }
  return { notFound, withoutUsage };
}

/** Reads the usage of documents that are written already; returns those that have no listing of their own for it. */
export async function readUsageOneByOne(
  reads: SingleReads,
  ids: readonly string[],
): Promise<readonly string[]> {
  let left = ids;
  for (const some of batches(ids)) {
    const readAt = await warehouseNow(reads.deps.warehouse.db);
    const usage = await readUsageOf(reads, some);
    if (usage === undefined) return left;
    await writeSets(reads, some, readAt, usage);
    left = left.slice(some.length);
  }
  return left;
}

type FoundRecord = Extract<RecordAnswer, { found: true }>;

async function readRecord({ deps, tried }: SingleReads, id: string): Promise<FoundRecord | undefined> {
  const signal = Context.current().cancellationSignal;
  const answer = await deps.service.record({ endpoint: 'document', params: { id }, lane: 'live', signal });
  if (!answer.found) return undefined;
  tried.working.add('document');
  return answer;
}

/** All usage of each document, by its id; undefined when documents turn out to have no such listing. */
async function readUsageOf(
  reads: SingleReads,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly Page[]> | undefined> {
  const answers = await Promise.all(ids.map((id) => usagePages(reads, id)));
  if (answers.some((pages) => pages !== undefined)) reads.tried.working.add('documentUsage');
  else if (!(await isGone(reads, ids[0] ?? ''))) {
    reads.tried.missing.add('documentUsage');
    return undefined;
  }
  return new Map(ids.map((id, at) => [id, answers[at] ?? []]));
}

/** Pages of a document's usage; undefined when there are none to be found. */
async function usagePages({ deps }: SingleReads, id: string): Promise<Page[] | undefined> {
  const signal = Context.current().cancellationSignal;
  const endpoint = 'documentUsage';
  const pages: Page[] = [];
  try {
    const walk = walkPages({ client: deps.service, endpoint, params: { id }, lane: 'live', signal });
    for await (const page of walk) pages.push(page);
    return pages;
  } catch (error) {
    if (error instanceof Failure && error.code === 'SERVICE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** Whether documents without usage went since they were read, rather than that usage has no such endpoint. */
async function isGone(reads: SingleReads, id: string): Promise<boolean> {
  if (reads.tried.working.has('documentUsage')) return true;
  if (!reads.tried.working.has('document')) return false;
  return (await readRecord(reads, id)) === undefined;
}

async function writeSets(
  { deps, companyId }: SingleReads,
  documentIds: readonly string[],
  readAt: string,
  usage: ReadonlyMap<string, readonly Page[]>,
  documents?: RecordsRead,
): Promise<void> {
  const pages = [...usage.values()].flat();
  const page = {
    body: `[${pages.map(({ body }) => body).join(',')}]`,
    itemsKey: pages[0]?.itemsKey ?? null,
    joined: true,
    companyId,
    readAt,
    apiVersion: deps.apiVersion,
    documentOf: documentsOf(usage),
  };
  const rows = { page, ids: pages.flatMap(({ ids }) => ids) };
  const sets = { documentIds, readAt, documents, usage: rows.ids.length === 0 ? undefined : rows };
  await writeDocumentSets(deps.warehouse.db, sets);
  for (const { items } of pages) await noteFields(deps, 'usageData', items);
}

/** Rows that stand in a document's own listing need not name it. */
function documentsOf(usage: ReadonlyMap<string, readonly Page[]>): Record<string, string> {
  const listed = [...usage].flatMap(([id, pages]) =>
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
