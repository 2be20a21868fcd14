import { Context } from '@temporalio/activity';
import { Failure } from '../contract/failures.ts';
import { limits } from '../contract/limits.ts';
import { dueRecords, parkOwner, settleRecords, warehouseNow } from '../db/catch-up.ts';
import { retireUsage } from '../db/write/usage-data.ts';
import type { Page } from '../service/page.ts';
import { confirmsPass } from '../service/stability.ts';
import { walkPages } from '../service/walk.ts';
import { refreshNeighbours } from './catch-up-connections.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { walkListing, write } from './listing.ts';

/** Documents that one pass of catching up reads, and those that are written together. */
const documentsTogether = 500;
const documentsPerWrite = 50;
/** Up to this many documents of a company are read one by one; beyond, its listing is walked. */
const documentsOneByOneMax = 25;

/**
 * What a worker learnt of the endpoints of single documents. A 404 alone tells little: the document may be gone, or the
 * service may have no such endpoint, whatever the catalogue says.
 */
export interface EndpointsTried {
  /** Those that answered 404 for a document that the service has. */
  readonly missing: Set<'document' | 'documentUsage'>;
  /** Those that have answered well. */
  readonly working: Set<'document' | 'documentUsage'>;
}

/** Reads the documents of a company that events left to be read, and the usage that belongs to them. */
export async function catchUpDocuments(
  deps: ActivityDependencies,
  tried: EndpointsTried,
  companyId: string,
): Promise<void> {
  const { db } = deps.warehouse;
  const readAt = await warehouseNow(db);
  const due = await dueRecords(db, 'documents', companyId, documentsTogether);
  const reading = { deps, tried, companyId, readAt };
  const notFound = await readDocuments(reading, due);
  const gone = new Set(notFound);
  const exact = await readUsage(
    reading,
    due.filter((id) => !gone.has(id)),
  );
  await refreshNeighbours(deps, companyId, { meters: false });
  if (exact) await settleRecords(db, 'documents', due, readAt, notFound);
  else {
    const message = 'the list of usage data moves while it is read';
    await parkOwner(db, 'documents', companyId, { code: null, message });
  }
}

interface Reading {
  readonly deps: ActivityDependencies;
  readonly tried: EndpointsTried;
  readonly companyId: string;
  readonly readAt: string;
}

/** Returns the ids that the service does not have. */
async function readDocuments(reading: Reading, due: readonly string[]): Promise<readonly string[]> {
  const { deps, tried } = reading;
  const single = deps.service.has('document') && !tried.missing.has('document');
  if (single && due.length <= documentsOneByOneMax) {
    const notFound = await readOneByOne(reading, due);
    if (notFound.length === 0 || !deps.service.has('documents')) return notFound;
    // Either they are gone, or the service has no such endpoint: its listing knows.
    const unseen = await walkDocuments(reading, notFound);
    if (unseen.length < notFound.length) tried.missing.add('document');
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
        reading.tried.working.add('document');
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
 * listing of the whole company serves where documents have none of their own. Returns whether all of it was seen.
 */
async function readUsage(reading: Reading, documentIds: readonly string[]): Promise<boolean> {
  const { deps, tried } = reading;
  if (documentIds.length === 0) return true;
  if (!deps.service.has('documentUsage') || tried.missing.has('documentUsage')) {
    return await readUsageListing(reading, documentIds);
  }
  for (const some of batches(documentIds)) {
    const answers = await Promise.all(some.map((id) => usagePages(reading, id)));
    const found = answers.filter((pages) => pages !== undefined);
    if (found.length > 0) tried.working.add('documentUsage');
    else if (!(await isGone(reading, some))) {
      tried.missing.add('documentUsage');
      return await readUsageListing(reading, documentIds);
    }
    await writeUsage(reading, some, found.flat());
  }
  return true;
}

/** Pages of a document's usage; undefined when there are none to be found. */
async function usagePages({ deps }: Reading, id: string): Promise<Page[] | undefined> {
  const signal = Context.current().cancellationSignal;
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
    return pages;
  } catch (error) {
    if (error instanceof Failure && error.code === 'SERVICE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** Whether documents without usage went since they were read, rather than that usage has no such endpoint. */
async function isGone({ deps, tried }: Reading, [id = '']: readonly string[]): Promise<boolean> {
  if (tried.working.has('documentUsage')) return true;
  if (!tried.working.has('document')) return false;
  const signal = Context.current().cancellationSignal;
  return !(await deps.service.record({ endpoint: 'document', params: { id }, lane: 'live', signal })).found;
}

/**
 * Reads all usage of the company, again until a pass confirms the one before: a listing loses records between two
 * pages while others are deleted.
 */
async function readUsageListing(reading: Reading, documentIds: readonly string[]): Promise<boolean> {
  const { deps, companyId } = reading;
  if (!deps.service.has('usageData')) return true;
  const walk = { listing: 'usageData', companyId, params: { companyId }, lane: 'live' } as const;
  let before: Awaited<ReturnType<typeof walkListing>> | undefined;
  for (let pass = 1; pass <= limits.passesMax; pass++) {
    const now = await walkListing(deps, walk);
    const whole = now.report.ended === 'last' && now.report.pages === 1;
    const proven = whole ? now : before;
    if (proven !== undefined && (whole || confirmsPass(proven.report.manifest, now.report.manifest))) {
      await retireUsage(deps.warehouse.db, documentIds, proven.ids, proven.beganAt);
      return true;
    }
    before = now;
  }
  return false;
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
