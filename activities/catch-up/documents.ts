import { batches } from '../../contract/limits.ts';
import { tombstoneUnverified } from '../../db/backfill/strangers.ts';
import { dueDocuments, liveUsage, usageListedByRecords, type WantedDocument } from '../../db/catch-up/due.ts';
import { postponeDocuments, postponeFailed, settleRecords } from '../../db/catch-up/settle.ts';
import { withTransaction } from '../../db/connection/connect.ts';
import { holdDocuments, retireUsage } from '../../db/records/usage-data.ts';
import { readUntilProven } from '../reading/read-until-proven.ts';
import { walkListing } from '../reading/walk-listing.ts';
import { admitAndRefresh } from './connections.ts';
import { searchListing } from './search.ts';
import { has, readOneByOne, readUsageOneByOne, type SingleReads } from './single.ts';

/** Reads the stale documents of a company, and their usage. */
export async function catchUpDocuments(
  catchUp: Omit<SingleReads, 'failed' | 'moved' | 'readAt'>,
): Promise<void> {
  const { deps, companyId } = catchUp;
  const failed: SingleReads['failed'] = new Map();
  const moved: SingleReads['moved'] = new Set();
  const { db } = deps.warehouse;
  const { readAt, due } = await dueDocuments(db, companyId, batches.documents);
  const reads = { ...catchUp, failed, moved, readAt };
  const ids = due.map(({ id }) => id);
  const read = await readDocuments(reads, due);
  const { unseen, proven } = read;
  const unsettled = new Set([...read.partial, ...(await readUsage(reads, read))]);
  for (const id of failed.keys()) unsettled.delete(id);
  const admitted = await admitAndRefresh(deps, 'documents', companyId, ids, { meters: false });
  const settled = ids.filter((id) => !unsettled.has(id) && !failed.has(id) && !moved.has(id));
  await settleRecords(db, 'documents', settled, readAt, proven ? unseen : [], companyId);
  if (unsettled.size > 0) await postponeDocuments(db, [...unsettled], readAt);
  for (const [id, reason] of failed) await postponeFailed(db, id, readAt, reason);
  if (!admitted) await tombstoneUnverified(db, companyId);
}

interface DocumentsRead {
  /** Documents that the service did not return. */
  readonly unseen: readonly string[];
  /** Whether that proves that it does not have them. */
  readonly proven: boolean;
  /** Documents that were read without their usage. */
  readonly withoutUsage: readonly string[];
  /** Documents that have no usage listing of their own. */
  readonly unlisted: readonly string[];
  /** Documents whose usage was incomplete. */
  readonly partial: readonly string[];
}

async function readDocuments(reads: SingleReads, due: readonly WantedDocument[]): Promise<DocumentsRead> {
  const { deps, tried, companyId, failed } = reads;
  const ids = due.map(({ id }) => id);
  const listed = deps.service.has('documents');
  const search = (wanted: readonly WantedDocument[]) =>
    searchListing(deps, { listing: 'documents', companyId, wanted });
  const none = { withoutUsage: [], unlisted: [], partial: [] };
  if (has(reads, 'document') && (due.length <= batches.documentsOneByOne || !listed)) {
    const { notFound, refused, withoutUsage, ...asked } = await readOneByOne(reads, ids);
    const doubtful = [...notFound, ...refused];
    if (doubtful.length === 0 || !listed) return { unseen: notFound, proven: true, withoutUsage, ...asked };
    // The document may be gone, or the endpoint missing, or refused for it or the company: the listing
    // decides.
    const searched = await search(due.filter(({ id }) => doubtful.includes(id)));
    const present = doubtful.filter((id) => !searched.unseen.includes(id));
    for (const id of present) failed.delete(id);
    if (present.some((id) => notFound.includes(id)) && !tried.working.has('document'))
      tried.missing.add('document');
    const unseen = searched.unseen.filter((id) => notFound.includes(id));
    return { unseen, proven: searched.proven, withoutUsage: [...withoutUsage, ...present], ...asked };
  }
  if (!listed) return { unseen: ids, proven: true, ...none };
  const { unseen, proven } = await search(due);
  const seen = ids.filter((id) => !unseen.includes(id));
  if (unseen.length === 0 || !has(reads, 'document')) return { unseen, proven, ...none, withoutUsage: seen };
  // A listing may lose a record between two pages, so each unseen one is requested by its id.
  const { notFound, withoutUsage, unlisted, partial } = await readOneByOne(reads, unseen);
  return { unseen: notFound, proven, withoutUsage: [...seen, ...withoutUsage], unlisted, partial };
}

/**
 * Reads the usage of documents, each from its own listing; from the company's listing where it has none. A
 * document's usage is one set: rows that the listing lacks are tombstoned. Returns the documents whose usage
 * was incomplete.
 */
async function readUsage(reads: SingleReads, read: DocumentsRead): Promise<readonly string[]> {
  const { deps, tried } = reads;
  const alone = has(reads, 'documentUsage');
  const { unlisted, partial } = alone
    ? await readUsageOneByOne(reads, read.withoutUsage)
    : { unlisted: read.withoutUsage, partial: [] };
  const left = [...read.unlisted, ...unlisted];
  if (left.length === 0) return partial;
  // Where other documents have a listing, the rows that the warehouse has of these are in doubt.
  if (!deps.service.has('usageData'))
    return tried.working.has('documentUsage') ? [...partial, ...left] : partial;
  const complete = (await searchUsage(reads, left)) || (await walkUsage(reads, left));
  if (!complete) return [...partial, ...left];
  const live = alone && !tried.working.has('documentUsage') && (await liveUsage(deps.warehouse.db, left));
  if (live && live.size > 0) tried.missing.add('documentUsage');
  return partial;
}

/** Where document records contain their usage, searches for its rows by id. Returns whether it found all. */
async function searchUsage(
  { deps, companyId }: SingleReads,
  documentIds: readonly string[],
): Promise<boolean> {
  const { db } = deps.warehouse;
  const wanted = await usageListedByRecords(db, documentIds);
  if (wanted === undefined) return false;
  const { unseen } = await searchListing(deps, { listing: 'usageData', companyId, wanted });
  // The listing may contain rows of these documents that their records lack: then it must be walked.
  return unseen.length === 0 && (await usageListedByRecords(db, documentIds)) !== undefined;
}

/**
 * Reads all usage of the company, and tombstones rows of the documents that neither the proven pass has nor the
 * one that confirms it. An empty listing where rows live is likely a fault: nothing is tombstoned. Returns
 * whether the usage of the documents is complete.
 */
async function walkUsage({ deps, companyId }: SingleReads, documentIds: readonly string[]): Promise<boolean> {
  const { db } = deps.warehouse;
  const existing = [...(await liveUsage(db, documentIds)).values()].flat();
  const walk = { listing: 'usageData', companyId, params: { companyId }, lane: 'live' } as const;
  const { pass, last, proven } = await readUntilProven(existing, async () => {
    const { report, ids, beganAt } = await walkListing(deps, walk);
    return { manifest: report.manifest, ids, beganAt };
  });
  if (pass === undefined || last === undefined || !proven) return false;
  if (pass.ids.length === 0 && existing.length > 0) return false;
  await withTransaction(db, async (tx) => {
    await holdDocuments(tx, documentIds);
    await retireUsage(tx, documentIds, last.ids, pass.beganAt);
  });
  return true;
}
