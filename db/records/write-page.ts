import { sql } from 'drizzle-orm';
import { warehouseNow } from '../catch-up/due.ts';
import { type Database, type Transaction, withTransaction } from '../connection/connect.ts';
import { isRefusal, sqlMessage, warehouseFailure } from '../connection/failures.ts';
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
  const write = async (
    part: RecordPage,
    partIds: readonly (string | null)[],
    more?: Cte,
  ): Promise<PageWrittenAt> =>
    await withTransaction(db, async (tx) => {
      const cleared = clearingRejections({ resource, ids: partIds, readAt: page.readAt });
      const closing = sql`cleared as (${cleared}
    )${more === undefined ? sql`` : sql`, ${more}`}`;
      const { own, ...written } = await upsert(tx, part, closing);
      const { companyId, byId = false } = page;
      if (isListedByCompany(resource) && companyId !== null && !byId && own < partIds.length)
        await noteListed(tx, resource, companyId, partIds);
      // Records that differ from their rows, and did not replace them: there are few, if any.
      const kept = partIds.length - written.inserted - written.changed;
      const listed = part.digests !== undefined && !byId && page.confirms !== true;
      const older = kept > 0 && listed ? await countOlder(tx, resource, part) : 0;
      return { ...written, rejected: 0, ...ifAny(older) };
    });
  const writeRecords = async (records: readonly PageRecord[], more?: Cte): Promise<PageWrittenAt> =>
    await write(
      pageOf(page, records, ids.length),
      records.map(({ id }) => id),
      more,
    );
  const writePart = (records: readonly PageRecord[]) => writeRecords(records);
  const noteAlone = async (): Promise<{ now?: string }> =>
    noted === undefined ? {} : { now: await warehouseNow(db, noted) };
  const writeParts = async (records: readonly PageRecord[]): Promise<PageWrittenAt> => {
    const parts = await splitOnRefusal(records, writePart, async ({ id, text }, error) => {
      const { companyId } = page;
      await rejectRecord(db, { resource, companyId, id, text, error: sqlMessage(error) });
      return { ...nothingWritten, rejected: 1 };
    });
    return { ...parts.reduce(sum, nothingWritten), ...(await noteAlone()) };
  };
  const recordsOf = (): PageRecord[] =>
    itemTexts(page).map((text, at) => ({ id: ids[at] ?? null, text }));
  try {
    const changed = await changedRecords(db, resource, page, ids);
    if (changed?.length === 0) return { ...nothingWritten, ...(await noteAlone()) };
    const written = changed === undefined ? write(page, ids, noted) : writeRecords(changed, noted);
    return await written.catch((error: unknown) => {
      if (!isRefusal(error)) throw error;
      return writeParts(changed ?? recordsOf());
    });
  } catch (error) {
    throw warehouseFailure(error);
  }
}

/** Returns the records whose rows may need a write, with their digests; undefined if the rows have none. */
async function changedRecords(
  db: Database | Transaction,
  resource: RecordResource,
  page: RecordPage,
  ids: readonly (string | null)[],
): Promise<PageRecord[] | undefined> {
  if (!keepsDigests(resource) || ids.length === 0) return undefined;
  const texts = itemTexts(page);
  const digests = digestsOf(page, texts);
  if (digests === undefined) return undefined;
  // A usage row may belong to another document now.
  const namesDocuments = page.documentOf !== undefined;
  const unchanged = namesDocuments
    ? new Set()
    : await unchangedPlaces(db, resource, page, ids, digests);
  return texts.flatMap((text, at) =>
    unchanged.has(at) ? [] : [{ id: ids[at] ?? null, text, digest: digests[at] }],
  );
}

/**
 * Builds the page with these of its records. If these are all, the page keeps its own text, unless
 * that joins several, which costs Postgres a copy.
 */
function pageOf(page: RecordPage, records: readonly PageRecord[], all: number): RecordPage {
  const digests = records.flatMap(({ digest }) => digest ?? []);
  if (records.length === all && page.joined !== true) return { ...page, digests };
  const texts = records.map(({ text }) => text);
  return pageOfTexts(page, texts, digests);
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
