import type { SingleEndpoint } from '../../contract/endpoints.ts';
import { Failure } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import { printedUuids } from '../../db/connection/arrays.ts';
import { withTransaction } from '../../db/connection/connect.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { type DueRecords, dueRecords, warehouseNow } from '../../db/queue/due.ts';
import { postponeDocuments, usageUnstable } from '../../db/queue/postpone.ts';
import { isConfirmedCompany } from '../../db/records/companies.ts';
import { holdDocuments, liveUsage, retireUsage, usageListedByRecords } from '../../db/records/usage.ts';
import type { Page } from '../../service/page.ts';
import { judgePass, manifestOf } from '../../service/stability.ts';
import { cancellation } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { closeEndpoint } from '../gates.ts';
import { write } from '../reading/page-write.ts';
import { walkListing } from '../reading/walk-listing.ts';
import { readNeighbours } from './connections.ts';
import {
  type DocumentState,
  type DocumentStates,
  has,
  hasUsage,
  inState,
  isFound,
  readOneByOne,
  readUntilProven,
  readUsageOneByOne,
  type SingleReads,
} from './single.ts';

/** What a read of a company's due documents does. */
export interface DueReading {
  /** The number of the probe of the company's gate that this read is; 0 if its gate is open. */
  readonly probe: number;
  /** Whether the listings of the company are read if very many documents are due. Otherwise nothing is read then. */
  readonly walks: boolean;
}

/**
 * Reads the documents of a company's due events, and their usage. Returns whether so many are due that the
 * listings of the company have to be read for all of them.
 */
export async function catchUpDocuments(
  deps: ActivityDependencies,
  companyId: string,
  { probe, walks }: DueReading,
  records?: DueRecords,
): Promise<{ readonly isLarge: boolean }> {
  const { db } = deps.warehouse;
  const most = probe > 0 ? batches.recordsOneByOne : batches.documents;
  const found = records ?? (await dueRecords(db, 'documents', companyId, most));
  // Each probe reads another document, because one may be refused on its own.
  const due = probe > 0 ? found.due.filter((_, at) => at === probe % found.due.length) : found.due;
  const isLarge = due.length >= batches.documents && deps.service.has('documents');
  // The listing of a company that only events name shows whether the service has the company.
  const isKnown = (isLarge || found.deleted.length > 0) && (await isConfirmedCompany(db, companyId));
  const reads = ({ readAt, closed, deleted }: DueRecords): SingleReads => ({
    deps,
    companyId,
    probe,
    readAt,
    closed: new Set(closed),
    deleted: new Set(isKnown ? deleted : []),
  });
  if (!isLarge) await readDue(reads(found), due);
  else if (walks) {
    const all = await dueRecords(db, 'documents', companyId, batches.recordsSettled);
    const left = await readListed(reads(all), all.due);
    await readDue(reads({ ...all, readAt: await warehouseNow(db) }), left.slice(0, batches.documents));
  }
  return { isLarge };
}

/** Reads some documents, and settles or postpones their events. */
async function readDue(reads: SingleReads, due: readonly string[]): Promise<void> {
  const { deps, companyId, readAt } = reads;
  const { db } = deps.warehouse;
  const { documents, proven } = await readDocuments(reads, due);
  const states = await readUsage(reads, documents);
  await readNeighbours(deps, 'documents', companyId, due);
  const unseen = inState(states, 'unseen');
  const read = inState(states, 'read');
  const notFound = proven ? unseen : [];
  // What exceeds the cap is left to the next backfill, which needs a listing.
  const cap = deps.service.has('documents') ? deps.deletesCap : undefined;
  const settledBy = { companyId, shown: read, notFound, cap };
  await settleRecords(db, 'documents', [...read, ...unseen], readAt, settledBy);
  for (const [reason, failed] of Map.groupBy(states.keys(), (id) => states.get(id)))
    if (typeof reason === 'object') await postponeDocuments(db, failed, readAt, reason);
}

/**
 * Reads the listings of a company, and settles the events of all due documents that they show, and of deleted
 * documents that they rightly lack: the number of requests depends on the listings and not on the events. Returns
 * the other documents.
 */
async function readListed(reads: SingleReads, due: readonly string[]): Promise<string[]> {
  const { deps, companyId, readAt } = reads;
  const { db } = deps.warehouse;
  const params = { companyId };
  const { ids, report } = await walkListing(deps, {
    listing: 'documents',
    companyId,
    params,
    lane: 'live',
    beganAt: readAt,
  });
  const listed = new Set(printedUuids(ids));
  const seen = due.filter((id) => listed.has(id));
  const complete = !deps.service.has('usageData') || (await walkUsage(reads, seen));
  await readNeighbours(deps, 'documents', companyId, seen);
  for (let at = 0; at < seen.length; at += batches.documents) {
    const some = seen.slice(at, at + batches.documents);
    cancellation().throwIfAborted();
    if (complete) await settleRecords(db, 'documents', some, readAt, { companyId, shown: some });
    else await postponeDocuments(db, some, readAt, usageUnstable);
  }
  const unseen = due.filter((id) => !listed.has(id));
  const isProven = judgePass(report.manifest).stable;
  const isGone = (id: string) => isProven && reads.deleted.has(id);
  const gone = unseen.filter(isGone);
  for (let at = 0; at < gone.length; at += batches.documents)
    await settleRecords(db, 'documents', gone.slice(at, at + batches.documents), readAt, { companyId });
  return unseen.filter((id) => !isGone(id));
}

interface DocumentsRead {
  readonly documents: DocumentStates;
  /** Whether it is proved that the service does not have the documents that were not seen. */
  readonly proven: boolean;
}

/**
 * Reads documents by their ids, from the listing of their company, or from both. A document that an event deleted
 * is only requested by its id: the whole listing would have to be read to find that it lacks the document.
 */
async function readDocuments(reads: SingleReads, ids: readonly string[]): Promise<DocumentsRead> {
  const { deps, companyId } = reads;
  const listed = deps.service.has('documents');
  const deleted = ids.filter((id) => reads.deleted.has(id));
  if (has(reads, 'document') && (ids.length <= batches.recordsOneByOne || !listed)) {
    const documents = await readOneByOne(reads, ids);
    return listed ? await searchDoubtful(reads, ids, documents) : { documents, proven: true };
  }
  if (!listed) return { documents: all(ids, 'unseen'), proven: true };
  const wanted = ids.filter((id) => !reads.deleted.has(id));
  const { unseen, proven } = await searchListing(deps, { listing: 'documents', companyId, wanted });
  const seen = wanted.filter((id) => !unseen.includes(id));
  const left = [...unseen, ...deleted];
  // A listing may skip a record that moves between two pages, so each is also requested by its id.
  const others = has(reads, 'document') ? await readOneByOne(reads, left) : all(left, 'unseen');
  return { documents: new Map([...all(seen, 'withoutUsage'), ...others]), proven };
}

/**
 * Searches the company's listing for documents that were refused or not found by id. The listing shows
 * whether they are gone, the endpoint does not exist, or the key may not read them.
 */
async function searchDoubtful(
  reads: SingleReads,
  ids: readonly string[],
  documents: DocumentStates,
): Promise<DocumentsRead> {
  const { deps, companyId } = reads;
  const notFound = inState(documents, 'unseen').filter((id) => !reads.deleted.has(id));
  const wanted = ids.filter((id) => notFound.includes(id) || isRefused(documents.get(id)));
  if (wanted.length === 0) return { documents, proven: true };
  const { unseen, proven } = await searchListing(deps, { listing: 'documents', companyId, wanted });
  const present = wanted.filter((id) => !unseen.includes(id));
  const [lost] = present.filter((id) => notFound.includes(id));
  // The listing may have shown a document just after it was requested.
  if (lost !== undefined && !(await isFound(reads, lost))) await stopUsing(reads, 'document', lost);
  return { documents: new Map([...documents, ...all(present, 'withoutUsage')]), proven };
}

/** Searches listings from now on, because an endpoint does not show a document that its listing shows. */
async function stopUsing({ deps, closed }: SingleReads, endpoint: SingleEndpoint, id: string): Promise<void> {
  closed.add(endpoint);
  await closeEndpoint(deps, endpoint, id);
}

const isRefused = (state: DocumentState | undefined): boolean =>
  typeof state === 'object' && state.code === 'SERVICE_RECORD_REFUSED';

const all = (ids: readonly string[], state: DocumentState): DocumentStates =>
  new Map(ids.map((id) => [id, state]));

/** Reads and replaces all usage of each document, from the document's or the company's listing. */
async function readUsage(reads: SingleReads, documents: DocumentStates): Promise<DocumentStates> {
  const withoutUsage = inState(documents, 'withoutUsage');
  const single = has(reads, 'documentUsage')
    ? await readUsageOneByOne(reads, withoutUsage)
    : all(withoutUsage, 'unlisted');
  const states = new Map([...documents, ...single]);
  const left = inState(states, 'unlisted');
  return left.length === 0 ? states : new Map([...states, ...(await readListedUsage(reads, left))]);
}

/** Reads the usage of documents from the listing of their company. */
async function readListedUsage(reads: SingleReads, ids: readonly string[]): Promise<DocumentStates> {
  const { deps } = reads;
  const { db } = deps.warehouse;
  if (!deps.service.has('usageData')) return all(ids, 'read');
  const complete = (await searchUsage(reads, ids)) || (await walkUsage(reads, ids));
  if (!complete) return all(ids, usageUnstable);
  if (has(reads, 'documentUsage')) {
    const [lost] = (await liveUsage(db, ids)).keys();
    if (lost !== undefined && !(await hasUsage(reads, lost))) await stopUsing(reads, 'documentUsage', lost);
  }
  return all(ids, 'read');
}

/** If document records name their usage, searches the listing for these rows. Returns whether it found all. */
async function searchUsage(
  { deps, companyId }: SingleReads,
  documentIds: readonly string[],
): Promise<boolean> {
  const { db } = deps.warehouse;
  const listed = await usageListedByRecords(db, documentIds);
  if (listed === undefined) return false;
  const { unseen } = await searchListing(deps, { listing: 'usageData', companyId, wanted: listed.ids });
  // The warehouse may have rows that the documents do not name. Then all of the listing is read.
  return unseen.length === 0 && (await usageListedByRecords(db, documentIds))?.held === true;
}

/**
 * Reads all usage of the company, and returns whether it is complete. Tombstones usage of the documents that
 * neither the proven nor the confirming pass contains, unless the listing is empty, which is likely wrong.
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
    await retireUsage(tx, documentIds, last.ids, pass.beganAt, companyId);
  });
  return true;
}

/** A page beyond the end of any listing. The service answers with the last page instead (service.md 7). */
const farPage = 1_000_000;

export interface ListingSearch {
  readonly listing: 'documents' | 'usageData';
  readonly companyId: string;
  readonly wanted: readonly string[];
}

export interface Searched {
  /** Ids that are on none of the pages that were read. */
  readonly unseen: string[];
  /**
   * Whether the listing lacks these ids. If false, it changed during the read and may have skipped them, or it is
   * empty, which is more likely a fault than a fact.
   */
  readonly proven: boolean;
}

/** Finds records in a company's listing, on the first and last page first; writes every page it reads. */
export async function searchListing(deps: ActivityDependencies, search: ListingSearch): Promise<Searched> {
  const { listing, companyId, wanted } = search;
  const unseenBy = (ids: readonly (string | null)[]): string[] => {
    const seen = new Set(ids);
    return wanted.filter((id) => !seen.has(id));
  };
  if (wanted.length === 0) return { unseen: [], proven: true };
  const first = await readPage(deps, search, 1);
  const unseen = unseenBy(first.ids);
  if (unseen.length === 0 || !first.hasNext)
    return { unseen, proven: first.count > 0 && judgePass([manifestOf(1, first)]).stable };
  const last = await readLastPage(deps, search);
  if (unseenBy([...first.ids, ...last]).length === 0) return { unseen: [], proven: true };
  const walk = { listing, companyId, params: { companyId }, lane: 'live' } as const;
  const { ids, report } = await walkListing(deps, walk);
  return { unseen: unseenBy(ids), proven: judgePass(report.manifest).stable };
}

/** Reads the ids of the last page. Returns none if the service refuses a page beyond the end. */
async function readLastPage(
  deps: ActivityDependencies,
  search: ListingSearch,
): Promise<readonly (string | null)[]> {
  try {
    return (await readPage(deps, search, farPage)).ids;
  } catch (error) {
    if (error instanceof Failure && error.status !== undefined && error.action === 'park') return [];
    throw error;
  }
}

async function readPage(deps: ActivityDependencies, search: ListingSearch, asked: number): Promise<Page> {
  const { listing, companyId } = search;
  const signal = cancellation();
  const readAt = await warehouseNow(deps.warehouse.db);
  const params = { companyId };
  let release: (() => void) | undefined;
  const hold = (given: () => void): void => {
    release = given;
  };
  try {
    const page = await deps.service.page({
      endpoint: listing,
      params,
      page: asked,
      lane: 'live',
      signal,
      hold,
    });
    await write(deps, { listing, companyId, readAt, page, confirms: true });
    return page;
  } finally {
    release?.();
  }
}
