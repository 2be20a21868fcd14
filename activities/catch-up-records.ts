import { Context } from '@temporalio/activity';
import { dueRecords, settleRecords, unreadNeighbours, warehouseNow } from '../db/catch-up.ts';
import { retireUsageOfDocument } from '../db/write/usage-data.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { walkListing, write } from './listing.ts';

/** Up to this many documents of a company are read one by one; beyond, its listings are walked once. */
const documentsOneByOneMax = 25;

/** Reads the connections of a company again, and what they brought along. */
export async function catchUpConnections(deps: ActivityDependencies, companyId: string): Promise<void> {
  const { db } = deps.warehouse;
  const readAt = await warehouseNow(db);
  await walkListing(deps, { listing: 'connections', companyId, params: { companyId }, lane: 'live' });
  await refreshNeighbours(deps, companyId, { meters: true });
  await settleRecords(db, 'connections', companyId, readAt, []);
}

/** Reads the documents of a company that events left to be read, and the usage that belongs to them. */
export async function catchUpDocuments(deps: ActivityDependencies, companyId: string): Promise<void> {
  const { db } = deps.warehouse;
  const readAt = await warehouseNow(db);
  const due = await dueRecords(db, 'documents', companyId);
  const oneByOne = deps.service.has('document') && due.length <= documentsOneByOneMax;
  const notFound = oneByOne
    ? await readOneByOne(deps, companyId, due, readAt)
    : await readListings(deps, companyId, due);
  await refreshNeighbours(deps, companyId, { meters: false });
  await settleRecords(db, 'documents', companyId, readAt, notFound);
}

/** Returns the ids that the service no longer has. */
async function readOneByOne(
  deps: ActivityDependencies,
  companyId: string,
  ids: readonly string[],
  readAt: string,
): Promise<string[]> {
  const byDocument = deps.service.has('documentUsage');
  const found = await Promise.all(
    ids.map(async (id) => {
      const context = Context.current();
      const signal = context.cancellationSignal;
      const [answer] = await Promise.all([
        deps.service.record({ endpoint: 'document', params: { id }, lane: 'live', signal }),
        byDocument ? readUsageOfDocument(deps, companyId, id) : undefined,
      ]);
      context.heartbeat({ document: id });
      if (!answer.found) return { id, found: false };
      const page = { body: answer.body, itemsKey: '', ids: [id] };
      await write(deps, { listing: 'documents', companyId, readAt, page });
      return { id, found: true };
    }),
  );
  if (!byDocument && found.some((one) => one.found)) await readUsageListing(deps, companyId, ids);
  return found.filter((one) => !one.found).map((one) => one.id);
}

/** A document's usage is one set: what its own listing no longer shows is gone. */
async function readUsageOfDocument(deps: ActivityDependencies, companyId: string, id: string): Promise<void> {
  const { db } = deps.warehouse;
  const walk = {
    listing: 'usageData',
    endpoint: 'documentUsage',
    companyId,
    params: { id },
    lane: 'live',
  } as const;
  try {
    const { report, ids, beganAt } = await walkListing(deps, walk);
    if (report.ended === 'last') await retireUsageOfDocument(db, id, ids, beganAt);
  } catch (error) {
    // The document is gone, which its own endpoint tells as well.
    if ((error as { code?: unknown }).code !== 'SERVICE_NOT_FOUND') throw error;
  }
}

async function readListings(
  deps: ActivityDependencies,
  companyId: string,
  due: readonly string[],
): Promise<string[]> {
  await walkListing(deps, { listing: 'documents', companyId, params: { companyId }, lane: 'live' });
  await readUsageListing(deps, companyId, due);
  return [];
}

/** Reads all usage of a company; the rows of the given documents that it no longer shows are gone. */
async function readUsageListing(
  deps: ActivityDependencies,
  companyId: string,
  documentIds: readonly string[],
): Promise<void> {
  if (!deps.service.has('usageData')) return;
  const walk = { listing: 'usageData', companyId, params: { companyId }, lane: 'live' } as const;
  const { report, ids, beganAt } = await walkListing(deps, walk);
  if (report.ended !== 'last') return;
  await deps.warehouse.db.transaction(async (tx) => {
    for (const id of documentIds) await retireUsageOfDocument(tx, id, ids, beganAt);
  });
}

/** Reads what is known by name only: the company and its sites, meters that usage names. */
async function refreshNeighbours(
  deps: ActivityDependencies,
  companyId: string,
  also: { meters: boolean },
): Promise<void> {
  const unread = await unreadNeighbours(deps.warehouse.db, companyId);
  if (unread.companies && deps.service.has('companies')) {
    await walkListing(deps, { listing: 'companies', companyId: null, params: {}, lane: 'live' });
  }
  if ((also.meters || unread.meters) && deps.service.has('meters')) {
    await walkListing(deps, { listing: 'meters', companyId, params: { companyId }, lane: 'live' });
  }
}
