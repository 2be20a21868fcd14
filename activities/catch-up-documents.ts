import { Context } from '@temporalio/activity';
import { Failure } from '../contract/failures.ts';
import { dueRecords, settleRecords, warehouseNow } from '../db/catch-up.ts';
import { retireUsage } from '../db/write/usage-data.ts';
import type { Page } from '../service/page.ts';
import { walkPages } from '../service/walk.ts';
import { refreshNeighbours } from './catch-up-connections.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { walkListing, write } from './listing.ts';

/** Documents that one pass of catching up reads, and those that are written together. */
const documentsTogether = 500;
const documentsPerWrite = 50;
/** Up to this many documents of a company are read one by one; beyond, its listing is walked. */
const documentsOneByOneMax = 25;

/** Endpoints of the catalogue that turned out not to exist: a 404 for a record that the service has. */
export type MissingEndpoints = Set<'document' | 'documentUsage'>;

/** Reads the documents of a company that events left to be read, and the usage that belongs to them. */
export async function catchUpDocuments(
  deps: ActivityDependencies,
  missing: MissingEndpoints,
  companyId: string,
): Promise<void> {
  const { db } = deps.warehouse;
  const readAt = await warehouseNow(db);
  const due = await dueRecords(db, 'documents', companyId, documentsTogether);
  const reading = { deps, missing, companyId, readAt };
  const notFound = await readDocuments(reading, due);
  const gone = new Set(notFound);
  await readUsage(
    reading,
    due.filter((id) => !gone.has(id)),
  );
  await refreshNeighbours(deps, companyId, { meters: false });
  await settleRecords(db, 'documents', due, readAt, notFound);
}

interface Reading {
  readonly deps: ActivityDependencies;
  readonly missing: MissingEndpoints;
  readonly companyId: string;
  readonly readAt: string;
}

/** Returns the ids that the service does not have. */
async function readDocuments(reading: Reading, due: readonly string[]): Promise<readonly string[]> {
  const { deps, missing } = reading;
  const single = deps.service.has('document') && !missing.has('document');
  if (single && due.length <= documentsOneByOneMax) {
    const notFound = await readOneByOne(reading, due);
    if (notFound.length === 0 || !deps.service.has('documents')) return notFound;
    // Either they are gone, or the service has no such endpoint: its listing knows.
    const unseen = await walkDocuments(reading, notFound);
    if (unseen.length < notFound.length) missing.add('document');
    return unseen;
  }
  const unseen = deps.service.has('documents') ? await walkDocuments(reading, due) : due;
  // A listing may lose a record between two pages: what it did not show is asked for by itself.
  return single ? await readOneByOne(reading, unseen) : unseen;
}

/** Walks the listing; returns those of the given ids that it did not show. */
async function walkDocuments(reading: Reading, ids: readonly string[]): Promise<string[]> {
  const { deps, companyId } = reading;
  const walk = { listing: 'documents', companyId, params: { companyId }, lane: 'live' } as const;
  const seen = new Set((await walkListing(deps, walk)).ids);
  return ids.filter((id) => !seen.has(id));
}

async function readOneByOne(reading: Reading, ids: readonly string[]): Promise<string[]> {
  const { deps, companyId, readAt } = reading;
  const notFound: string[] = [];
  for (const some of batches(ids)) {
    const bodies: string[] = [];
    const found: string[] = [];
    const context = Context.current();
    const read = async (id: string): Promise<void> => {
      const signal = context.cancellationSignal;
      const answer = await deps.service.record({
        endpoint: 'document',
        params: { id },
        lane: 'live',
        signal,
      });
      if (!answer.found) notFound.push(id);
      else {
        bodies.push(answer.body);
        found.push(id);
      }
    };
    await Promise.all(some.map(read));
    const page = { body: `[${bodies.join(',')}]`, itemsKey: '', joined: true, ids: found };
    if (found.length > 0) await write(deps, { listing: 'documents', companyId, readAt, page });
  }
  return notFound;
}

/**
 * A document's usage is one set, whichever way it is read: what its own listing no longer shows is gone. The
 * listing of the whole company serves where documents have none of their own.
 */
async function readUsage(reading: Reading, documentIds: readonly string[]): Promise<void> {
  const { deps, missing, companyId, readAt } = reading;
  if (documentIds.length === 0) return;
  if (deps.service.has('documentUsage') && !missing.has('documentUsage')) {
    for (const some of batches(documentIds)) {
      const pages = (await Promise.all(some.map((id) => usagePages(reading, id)))).flat();
      if (missing.has('documentUsage')) return await readUsage(reading, documentIds);
      await writeUsage(reading, some, pages);
    }
    return;
  }
  if (!deps.service.has('usageData')) return;
  const walk = { listing: 'usageData', companyId, params: { companyId }, lane: 'live' } as const;
  const { report, ids } = await walkListing(deps, walk);
  if (report.ended === 'last') await retireUsage(deps.warehouse.db, documentIds, ids, readAt);
}

async function usagePages(reading: Reading, id: string): Promise<Page[]> {
  const { deps, missing } = reading;
  const context = Context.current();
  const signal = context.cancellationSignal;
  const pages: Page[] = [];
  try {
    const walk = walkPages({
      client: deps.service,
      endpoint: 'documentUsage',
      params: { id },
      lane: 'live',
      signal,
    });
    for await (const page of walk) pages.push(page);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'SERVICE_NOT_FOUND') throw error;
    // Either the document went meanwhile, and its usage with it, or the service has no such endpoint.
    const document = { endpoint: 'document', params: { id }, lane: 'live', signal } as const;
    const known = deps.service.has('document') && !missing.has('document');
    if (!known || (await deps.service.record(document)).found) missing.add('documentUsage');
  }
  return pages;
}

async function writeUsage(
  reading: Reading,
  documentIds: readonly string[],
  pages: readonly Page[],
): Promise<void> {
  const { deps, companyId, readAt } = reading;
  const ids = pages.flatMap((page) => page.ids);
  const [first] = pages;
  if (first !== undefined && ids.length > 0) {
    const page = {
      body: `[${pages.map((one) => one.body).join(',')}]`,
      itemsKey: first.itemsKey,
      joined: true,
      ids,
    };
    await write(deps, { listing: 'usageData', companyId, readAt, page });
  }
  await retireUsage(
    deps.warehouse.db,
    documentIds,
    ids.filter((id) => id !== null),
    readAt,
  );
}

function batches(ids: readonly string[]): string[][] {
  const count = Math.ceil(ids.length / documentsPerWrite);
  return Array.from({ length: count }, (_, at) =>
    ids.slice(at * documentsPerWrite, (at + 1) * documentsPerWrite),
  );
}
