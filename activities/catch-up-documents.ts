import { limits } from '../contract/limits.ts';
import {
  dueDocuments,
  parkOwner,
  settleRecords,
  usageToldByRecords,
  type WantedDocument,
  warehouseNow,
} from '../db/catch-up.ts';
import { retireUsage } from '../db/write/usage-data.ts';
import { confirmsPass } from '../service/stability.ts';
import { refreshNeighbours } from './catch-up-connections.ts';
import { searchListing } from './catch-up-search.ts';
import { has, readOneByOne, readUsageOneByOne, type SingleReads } from './catch-up-single.ts';
import { walkListing } from './listing.ts';

/** Documents that one pass of catching up reads. */
const documentsTogether = 500;
/** Up to this many documents of a company are read one by one; beyond, its listing is searched. */
const documentsOneByOneMax = 25;

/** Reads the documents of a company that events left to be read, and the usage that belongs to them. */
export async function catchUpDocuments(reads: SingleReads): Promise<void> {
  const { deps, companyId } = reads;
  const { db } = deps.warehouse;
  const readAt = await warehouseNow(db);
  const due = await dueDocuments(db, companyId, documentsTogether);
  const ids = due.map(({ id }) => id);
  const { unseen, proven, withoutUsage } = await readDocuments(reads, due);
  const whole = await readUsage(reads, withoutUsage);
  await refreshNeighbours(deps, companyId, { meters: false, documentIds: ids });
  if (whole) {
    await settleRecords(db, 'documents', ids, readAt, proven ? unseen : []);
    return;
  }
  const message = 'the list of usage data moves while it is read';
  await parkOwner(db, 'documents', companyId, { code: 'LISTING_UNSTABLE', message });
}

interface DocumentsRead {
  /** Documents that the service did not show, and whether that proves that it does not have them. */
  readonly unseen: readonly string[];
  readonly proven: boolean;
  /** Documents that were read, and their usage was not. */
  readonly withoutUsage: readonly string[];
}

async function readDocuments(reads: SingleReads, due: readonly WantedDocument[]): Promise<DocumentsRead> {
  const { deps, tried, companyId } = reads;
  const ids = due.map(({ id }) => id);
  const listed = deps.service.has('documents');
  const search = (wanted: readonly WantedDocument[]) =>
    searchListing(deps, { listing: 'documents', companyId, wanted });
  if (has(reads, 'document') && (due.length <= documentsOneByOneMax || !listed)) {
    const { notFound, withoutUsage } = await readOneByOne(reads, ids);
    if (notFound.length === 0 || !listed) return { unseen: notFound, proven: true, withoutUsage };
    // Either they are gone, or the service has no such endpoint: its listing knows.
    const { unseen, proven } = await search(due.filter(({ id }) => notFound.includes(id)));
    const shown = notFound.filter((id) => !unseen.includes(id));
    if (shown.length > 0 && !tried.working.has('document')) tried.missing.add('document');
    return { unseen, proven, withoutUsage: [...withoutUsage, ...shown] };
  }
  if (!listed) return { unseen: ids, proven: true, withoutUsage: [] };
  const { unseen, proven } = await search(due);
  const shown = ids.filter((id) => !unseen.includes(id));
  if (unseen.length === 0 || !has(reads, 'document')) return { unseen, proven, withoutUsage: shown };
  // A listing may lose a record between two pages: what it did not show is asked for by itself.
  const { notFound, withoutUsage } = await readOneByOne(reads, unseen);
  return { unseen: notFound, proven, withoutUsage: [...shown, ...withoutUsage] };
}

/**
 * A document's usage is one set, whichever way it is read: what its own listing no longer shows is gone. The
 * listing of the whole company serves where documents have none of their own. Returns whether all of it was seen.
 */
async function readUsage(reads: SingleReads, documentIds: readonly string[]): Promise<boolean> {
  if (documentIds.length === 0) return true;
  const left = has(reads, 'documentUsage') ? await readUsageOneByOne(reads, documentIds) : documentIds;
  if (left.length === 0 || !reads.deps.service.has('usageData')) return true;
  return (await searchUsage(reads, left)) || (await walkUsage(reads, left));
}

/** Where records tell their usage, its rows are looked for by their ids. Returns whether that was enough. */
async function searchUsage(
  { deps, companyId }: SingleReads,
  documentIds: readonly string[],
): Promise<boolean> {
  const { db } = deps.warehouse;
  const wanted = await usageToldByRecords(db, documentIds);
  if (wanted === undefined) return false;
  const { unseen } = await searchListing(deps, { listing: 'usageData', companyId, wanted });
  // The listing may have brought rows of these documents that their records don't tell: then it must be read whole.
  return unseen.length === 0 && (await usageToldByRecords(db, documentIds)) !== undefined;
}

/**
 * Reads all usage of the company, again until a pass confirms the one before: a listing loses records between two
 * pages while others are deleted.
 */
async function walkUsage({ deps, companyId }: SingleReads, documentIds: readonly string[]): Promise<boolean> {
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
