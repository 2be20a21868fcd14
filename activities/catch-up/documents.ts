import { forgetStranger } from '../../db/backfill/strangers.ts';
import { dueDocuments, liveUsage, usageToldByRecords, type WantedDocument } from '../../db/catch-up/due.ts';
import { postponeDocuments, postponeFailed, settleRecords } from '../../db/catch-up/settle.ts';
import { retireUsage } from '../../db/records/usage-data.ts';
import { readWhole } from '../reading/read-whole.ts';
import { walkListing } from '../reading/walk-listing.ts';
import { admitAndRefresh } from './connections.ts';
import { searchListing } from './search.ts';
import { has, readOneByOne, readUsageOneByOne, type SingleReads } from './single.ts';

/** Documents that one pass of catching up reads. */
const documentsTogether = 500;
/** Up to this many documents of a company are read one by one; beyond, its listing is searched. */
const documentsOneByOneMax = 25;

/** Reads the documents of a company that events left to be read, and the usage that belongs to them. */
export async function catchUpDocuments(
  catchUp: Omit<SingleReads, 'failed' | 'moved' | 'readAt'>,
): Promise<void> {
  const { deps, companyId } = catchUp;
  const failed: SingleReads['failed'] = new Map();
  const moved: SingleReads['moved'] = new Set();
  const { db } = deps.warehouse;
  const { readAt, due } = await dueDocuments(db, companyId, documentsTogether);
  const reads = { ...catchUp, failed, moved, readAt };
  const ids = due.map(({ id }) => id);
  const read = await readDocuments(reads, due);
  const { unseen, proven } = read;
  const unsettled = new Set([...read.partial, ...(await readUsage(reads, read))]);
  for (const id of failed.keys()) unsettled.delete(id);
  const known = await admitAndRefresh(deps, 'documents', companyId, ids, { meters: false });
  const settled = ids.filter((id) => !unsettled.has(id) && !failed.has(id) && !moved.has(id));
  await settleRecords(db, 'documents', settled, readAt, proven ? unseen : [], companyId);
  if (unsettled.size > 0) await postponeDocuments(db, [...unsettled], readAt);
  for (const [id, reason] of failed) await postponeFailed(db, id, readAt, reason);
  if (!known) await forgetStranger(db, companyId);
}

interface DocumentsRead {
  /** Documents that the service did not show, and whether that proves that it does not have them. */
  readonly unseen: readonly string[];
  readonly proven: boolean;
  /** Documents that were read, and their usage was not. */
  readonly withoutUsage: readonly string[];
  /** Documents whose usage was asked for, and that have no listing of it. */
  readonly unlisted: readonly string[];
  /** Documents of whose usage not all was shown. */
  readonly partial: readonly string[];
}

async function readDocuments(reads: SingleReads, due: readonly WantedDocument[]): Promise<DocumentsRead> {
  const { deps, tried, companyId, failed } = reads;
  const ids = due.map(({ id }) => id);
  const listed = deps.service.has('documents');
  const search = (wanted: readonly WantedDocument[]) =>
    searchListing(deps, { listing: 'documents', companyId, wanted });
  const none = { withoutUsage: [], unlisted: [], partial: [] };
  if (has(reads, 'document') && (due.length <= documentsOneByOneMax || !listed)) {
    const { notFound, refused, withoutUsage, ...asked } = await readOneByOne(reads, ids);
    const doubtful = [...notFound, ...refused];
    if (doubtful.length === 0 || !listed) return { unseen: notFound, proven: true, withoutUsage, ...asked };
    // Either they are gone, or the service has no such endpoint, or refuses it, or the whole company: its listing knows.
    const searched = await search(due.filter(({ id }) => doubtful.includes(id)));
    const shown = doubtful.filter((id) => !searched.unseen.includes(id));
    for (const id of shown) failed.delete(id);
    if (shown.some((id) => notFound.includes(id)) && !tried.working.has('document'))
      tried.missing.add('document');
    const unseen = searched.unseen.filter((id) => notFound.includes(id));
    return { unseen, proven: searched.proven, withoutUsage: [...withoutUsage, ...shown], ...asked };
  }
  if (!listed) return { unseen: ids, proven: true, ...none };
  const { unseen, proven } = await search(due);
  const shown = ids.filter((id) => !unseen.includes(id));
  if (unseen.length === 0 || !has(reads, 'document')) return { unseen, proven, ...none, withoutUsage: shown };
  // A listing may lose a record between two pages: what it did not show is asked for by itself.
  const { notFound, withoutUsage, unlisted, partial } = await readOneByOne(reads, unseen);
  return { unseen: notFound, proven, withoutUsage: [...shown, ...withoutUsage], unlisted, partial };
}

/**
 * A document's usage is one set, whichever way it is read: what its own listing no longer shows is gone. The
 * listing of the whole company serves where documents have none of their own. Returns the documents of whose usage
 * not all was shown.
 */
async function readUsage(reads: SingleReads, read: DocumentsRead): Promise<readonly string[]> {
  const { deps, tried } = reads;
  const alone = has(reads, 'documentUsage');
  const { unlisted, partial } = alone
    ? await readUsageOneByOne(reads, read.withoutUsage)
    : { unlisted: read.withoutUsage, partial: [] };
  const left = [...read.unlisted, ...unlisted];
  if (left.length === 0) return partial;
  // Usage is held of them that nothing shows, where others have a listing.
  if (!deps.service.has('usageData'))
    return tried.working.has('documentUsage') ? [...partial, ...left] : partial;
  const whole = (await searchUsage(reads, left)) || (await walkUsage(reads, left));
  if (!whole) return [...partial, ...left];
  const shown = alone && !tried.working.has('documentUsage') && (await liveUsage(deps.warehouse.db, left));
  if (shown && shown.size > 0) tried.missing.add('documentUsage');
  return partial;
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
 * Reads all usage of the company. An empty listing where rows live is rather a fault: it deletes none. Returns whether
 * that showed all usage of the documents.
 */
async function walkUsage({ deps, companyId }: SingleReads, documentIds: readonly string[]): Promise<boolean> {
  const { db } = deps.warehouse;
  const known = [...(await liveUsage(db, documentIds)).values()].flat();
  const walk = { listing: 'usageData', companyId, params: { companyId }, lane: 'live' } as const;
  const { pass, whole } = await readWhole(known, async () => {
    const { report, ids, beganAt } = await walkListing(deps, walk);
    return { manifest: report.manifest, ids, beganAt };
  });
  if (pass === undefined || !whole || (pass.ids.length === 0 && known.length > 0)) return false;
  await retireUsage(db, documentIds, pass.ids, pass.beganAt);
  return true;
}
