import { sql } from 'drizzle-orm';
import { warehouseNow } from '../catch-up/due.ts';
import { type Database, type Transaction, withTransaction } from '../connection/connect.ts';
import { sqlMessage, warehouseFailure } from '../connection/failures.ts';
import { splitOnRefusal } from '../connection/split-on-refusal.ts';
import { isListedByCompany, type RecordResource } from '../resources.ts';
import { itemTexts, pageOfTexts } from './item-texts.ts';
import { countOlder } from './older.ts';
import { noteListed } from './owner.ts';
import type { Cte, RecordPage, UpsertPage, WrittenRows } from './page.ts';
import { clearingRejections, rejectRecord } from './rejected-records.ts';
import { digestsOf, keepsDigests, unchangedPlaces } from './unchanged.ts';

export interface PageWritten extends WrittenRows {
  readonly rejected: number;
  /** Records that arrived in an older state than their rows have; absent if there are none. */
  readonly older?: number | undefined;
  /** Values of readings that could not be read; absent if there are none. */
  readonly unreadable?: number | undefined;
}

/** A page that was written, and the warehouse's clock meanwhile, if a statement returned it. */
export interface PageWrittenAt extends PageWritten {
  readonly now?: string | undefined;
}

/** A record of a page: its id or null, its text, and the digest of that if its row keeps one. */
interface PageRecord {
  readonly id: string | null;
  readonly text: string;
  readonly digest?: string | undefined;
}

/** Where the records of a page go. */
interface Target {
  readonly db: Database | Transaction;
  readonly resource: RecordResource;
  readonly upsert: UpsertPage;
}

/**
 * Writes a page in one transaction, or as part of the given one. `noted` is a step `noted as (…)` of a
 * statement, run in that transaction. Unchanged records are left out before any parsing. If Postgres refuses
 * a record, the page is split to find it. The record goes to `metersync.rejected_records` with its text until
 * a later read succeeds, the others are written, and `noted` runs after them. `ids` are the ids of the page's
 * items, in order, null for items without one.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writePage(
  db: Database | Transaction,
  resource: RecordResource,
  upsert: UpsertPage,
  page: RecordPage,
  ids: readonly (string | null)[],
  noted?: Cte,
): Promise<PageWrittenAt> {
  const target = { db, resource, upsert };
  try {
    const records = await changedRecords(target, page, ids);
    if (records.length === 0) return await noteAlone(db, nothingWritten, noted);
    const parts = await splitOnRefusal(
      records,
      (some) => writeRecords(target, page, some, ids.length, some === records ? noted : undefined),
      (refused, error) => refuseRecord(target, page, refused, error),
    );
    const [whole] = parts;
    if (whole !== undefined && parts.length === 1 && whole.rejected === 0) return whole;
    return await noteAlone(db, parts.reduce(sum, nothingWritten), noted);
  } catch (error) {
    throw warehouseFailure(error);
  }
}

/** Returns the records whose rows may need a write, with their digests if the rows keep them. */
async function changedRecords(
  { db, resource }: Target,
  page: RecordPage,
  ids: readonly (string | null)[],
): Promise<readonly PageRecord[]> {
  if (ids.length === 0) return [];
  const texts = itemTexts(page);
  const digests = keepsDigests(resource) ? digestsOf(page, texts) : undefined;
  // A usage row may belong to another document now.
  const namesDocuments = page.documentOf !== undefined;
  const unchanged =
    digests === undefined || namesDocuments
      ? new Set<number>()
      : await unchangedPlaces(db, resource, page, ids, digests);
  return texts.flatMap((text, at) =>
    unchanged.has(at) ? [] : [{ id: ids[at] ?? null, text, digest: digests?.[at] }],
  );
}

/** Writes records of a page, of which there are `all`, in one transaction. */
async function writeRecords(
  { db, resource, upsert }: Target,
  page: RecordPage,
  records: readonly PageRecord[],
  all: number,
  noted: Cte | undefined,
): Promise<PageWrittenAt> {
  const part = pageOf(page, records, all);
  const ids = records.map(({ id }) => id);
  const { companyId, byId = false } = page;
  return await withTransaction(db, async (tx) => {
    const cleared = clearingRejections({ resource, ids, readAt: page.readAt });
    const closing = sql`cleared as (${cleared}
    )${noted === undefined ? sql`` : sql`, ${noted}`}`;
    const { own, ...written } = await upsert(tx, part, closing);
    if (isListedByCompany(resource) && companyId !== null && !byId && own < ids.length)
      await noteListed(tx, resource, companyId, ids);
    // Records that differ from their rows, and did not replace them: there are few, if any.
    const kept = ids.length - written.inserted - written.changed;
    const listed = part.digests !== undefined && !byId && page.confirms !== true;
    const older = kept > 0 && listed ? await countOlder(tx, resource, part) : 0;
    return { ...written, rejected: 0, ...ifAny(older) };
  });
}

/**
 * Builds the page with these of its records. If these are all, the page keeps its own text, unless
 * that joins several, which costs Postgres a copy.
 */
function pageOf(page: RecordPage, records: readonly PageRecord[], all: number): RecordPage {
  const known = records.flatMap(({ digest }) => digest ?? []);
  const digests = known.length === records.length ? known : undefined;
  if (records.length === all && page.joined !== true) return { ...page, digests };
  const texts = records.map(({ text }) => text);
  return pageOfTexts(page, texts, digests);
}

async function refuseRecord(
  { db, resource }: Target,
  { companyId }: RecordPage,
  { id, text }: PageRecord,
  error: unknown,
): Promise<PageWrittenAt> {
  await rejectRecord(db, { resource, companyId, id, text, error: sqlMessage(error) });
  return { ...nothingWritten, rejected: 1 };
}

/** Runs the step of a page that no statement with its records has run. */
async function noteAlone(
  db: Database | Transaction,
  written: PageWritten,
  noted: Cte | undefined,
): Promise<PageWrittenAt> {
  return noted === undefined ? written : { ...written, now: await warehouseNow(db, noted) };
}

export const nothingWritten: PageWritten = { inserted: 0, changed: 0, rejected: 0 };

/** Counts the records of a listing that a read found as their rows have them. */
export const unchangedOf = (
  distinct: number,
  { inserted, changed, rejected }: PageWritten,
): number => Math.max(0, distinct - inserted - changed - rejected);

export function sum(a: PageWritten, b: PageWritten): PageWritten {
  return {
    inserted: a.inserted + b.inserted,
    changed: a.changed + b.changed,
    rejected: a.rejected + b.rejected,
    ...ifAny((a.older ?? 0) + (b.older ?? 0), (a.unreadable ?? 0) + (b.unreadable ?? 0)),
  };
}

const ifAny = (older: number, unreadable = 0): Pick<PageWritten, 'older' | 'unreadable'> => ({
  ...(older > 0 ? { older } : {}),
  ...(unreadable > 0 ? { unreadable } : {}),
});
