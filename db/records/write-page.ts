import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { printedUuids } from '../connection/arrays.ts';
import {
  type Database,
  type Executor,
  type Transaction,
  type Warehouse,
  withTransaction,
} from '../connection/connect.ts';
import { splitOnRefusal, sqlMessage, warehouseFailure } from '../connection/failures.ts';
import { requeueMissing } from '../queue/queue.ts';
import {
  idOfRecord,
  type RecordResource,
  resources,
  row,
  tableName,
  tableOf,
  updatedOf,
} from '../resources.ts';
import { utility } from '../schema/utility.ts';
import { rememberListed, yieldToPreferred } from './also-listed.ts';
import { writeConnectionSites } from './connection-sites.ts';
import { isBehind } from './fence.ts';
import { isListedBy } from './listers.ts';
import { itemList, itemTexts, pageOfTexts, type RecordPage, type WrittenRows } from './page.ts';
import { rejectRecords } from './rejected.ts';
import { unchangedPlaces } from './unchanged.ts';
import { type Holdable, holdableRecord, isSuspicious } from './unholdable.ts';
import { isListing, upsertRecords, type WrittenRow } from './upsert.ts';
import { holdDocuments, lockDocuments, retireUsage, writeUsageOfDocuments } from './usage.ts';

export interface PageWritten extends WrittenRows {
  readonly rejected: number;
  /** Records that arrived in an older state than their rows have and keep; absent if there are none. */
  readonly older?: number | undefined;
  /** Records whose rows went back to an older state with the service; absent if there are none. */
  readonly reverted?: number | undefined;
  /** Values of readings that could not be read; absent if there are none. */
  readonly unreadable?: number | undefined;
}

/** A record of a page: its id or null, its text, and its digest if the table keeps digests. */
interface PageRecord {
  readonly id: string | null;
  readonly text: string;
  readonly digest?: string | undefined;
  /** What is written instead of the text if Postgres cannot hold some of its characters. */
  readonly instead?: Holdable | undefined;
}

type Ids = readonly (string | null)[];

/**
 * Writes a page in one transaction, or as part of the given transaction. For `sites`, the page is a
 * page of companies, and the sites in their records are written. Unchanged records are left out
 * before Postgres parses anything. Characters that Postgres cannot hold are replaced, and `unreadable`
 * of the row has the original texts. If Postgres refuses a record, the page is split to find it. The
 * record is kept in `metersync.rejected_records` with its text until a later read succeeds. The
 * other records are written. A page that is behind the fence of its listing changes nothing. `ids`
 * are the ids of the page's items, in order, null for items without one.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writePage(
  db: Database | Transaction,
  resource: RecordResource,
  given: RecordPage,
  ids: Ids,
): Promise<PageWritten> {
  const { companyId, readAt, walkBegan = readAt } = given;
  const page = { ...given, walk: { companyId, resource, began: walkBegan } };
  try {
    const records = await changedRecords(db, resource, page, ids);
    if (records.length === 0) return nothingWritten;
    const parts = await splitOnRefusal(
      records,
      (some) => {
        const part = pageOf(page, some, ids.length);
        return withTransaction(db, (tx) => writeChanged(tx, resource, part, idsOf(some)));
      },
      async ({ id, text }, error) => {
        const listing = resource === 'sites' ? 'companies' : resource;
        await rejectRecords(db, [
          { resource: listing, companyId, id, text, error: sqlMessage(error) },
        ]);
        return { ...nothingWritten, rejected: 1 };
      },
    );
    return parts.reduce(sum, nothingWritten);
  } catch (error) {
    throw warehouseFailure(error);
  }
}

const idsOf = (records: readonly PageRecord[]): Ids => records.map(({ id }) => id);

/** Returns the records whose rows may need a write, with their digests if the rows keep them. */
async function changedRecords(
  db: Database | Transaction,
  resource: RecordResource,
  page: RecordPage,
  ids: Ids,
): Promise<readonly PageRecord[]> {
  if (ids.length === 0) return [];
  const texts = itemTexts(page);
  const digests = digestsOf(resource, page, texts);
  // With `documentOf`, a usage row may belong to another document now.
  const unchanged =
    digests === undefined || page.documentOf !== undefined
      ? new Set<number>()
      : await unchangedPlaces(db, resource, page, ids, digests);
  const isSound = !isSuspicious(page.body);
  return texts.flatMap((text, at) => {
    if (unchanged.has(at)) return [];
    const instead = isSound ? undefined : holdableRecord(text);
    return [{ id: ids[at] ?? null, text, digest: digests?.[at], instead }];
  });
}

/**
 * Builds a page that has only these of the `all` records. If no record is left out or replaced, the
 * page keeps its own text, unless the text joins several pages, which would cost Postgres a copy.
 */
function pageOf(page: RecordPage, records: readonly PageRecord[], all: number): RecordPage {
  const known = records.flatMap(({ digest }) => digest ?? []);
  const digests = known.length === records.length ? known : undefined;
  const isAsSent = records.every(({ instead }) => instead === undefined);
  if (isAsSent && records.length === all && page.joined !== true) return { ...page, digests };
  const texts = records.map(({ text, instead }) => instead?.text ?? text);
  const replaced = isAsSent ? undefined : records.map(({ instead }) => instead?.replaced ?? null);
  return { ...pageOfTexts(page, texts, digests), replaced };
}

/** Writes changed records, and remembers those whose rows show what another company lists. */
async function writeChanged(
  tx: Transaction,
  resource: RecordResource,
  page: RecordPage,
  ids: Ids,
): Promise<PageWritten> {
  const { byId = false, walk } = page;
  const rows = await writeRows(tx, resource, page, ids);
  const inserted = rows.filter((row) => row.inserted).length;
  const own = rows.filter((row) => row.own).length;
  // The number of records that differ from their rows and did not replace them: few, if any.
  const kept = ids.length - rows.length;
  const isShared = isListing(resource, page) && own < ids.length;
  const asksOlder = kept > 0 && page.digests !== undefined && !byId && page.confirms !== true;
  const mayBeLate = rows.length === 0 && (isShared || asksOlder);
  if (mayBeLate && walk && (await isBehind(tx, walk, 'page'))) return nothingWritten;
  if (isShared) await rememberListed(tx, resource, page);
  const shared = rows.flatMap((row) => (row.shared ? [row.id] : []));
  if (shared.length > 0 && resource !== 'usageData') await yieldToPreferred(tx, resource, shared);
  const older = asksOlder ? await countOlder(tx, resource, page) : 0;
  const changed = rows.length - inserted;
  const reverted = rows.filter((row) => row.reverted).length;
  return { inserted, changed, rejected: 0, ...ifAny({ older, reverted }) };
}

/** Writes the rows of a page, and what belongs to them in other tables. */
export async function writeRows(
  tx: Transaction,
  resource: RecordResource,
  page: RecordPage,
  ids: Ids,
): Promise<WrittenRow[]> {
  if (resource === 'usageData') await lockDocuments(tx, page);
  const rows = await upsertRecords(tx, resource, page, ids);
  if (resource !== 'connections' && resource !== 'documents') return rows;
  // In a later snapshot: the rows are locked by now, so no event becomes missing meanwhile.
  const changed = rows.flatMap(({ id, inserted }) => (inserted ? [] : [id]));
  await requeueMissing(tx, resource, changed);
  if (resource === 'documents') await writeUsageOfDocuments(tx, page, rows);
  else await writeConnectionSites(tx, printedUuids(ids));
  return rows;
}

export const nothingWritten: PageWritten = { inserted: 0, changed: 0, rejected: 0 };

/** Counts the records of a listing that were equal to their rows when they were read. */
export const unchangedOf = (
  distinct: number,
  { inserted, changed, rejected }: PageWritten,
): number => Math.max(0, distinct - inserted - changed - rejected);

export function sum(a: PageWritten, b: PageWritten): PageWritten {
  return {
    inserted: a.inserted + b.inserted,
    changed: a.changed + b.changed,
    rejected: a.rejected + b.rejected,
    ...ifAny({
      older: (a.older ?? 0) + (b.older ?? 0),
      reverted: (a.reverted ?? 0) + (b.reverted ?? 0),
      unreadable: (a.unreadable ?? 0) + (b.unreadable ?? 0),
    }),
  };
}

/** Leaves out counts of zero: cursors and results stay small. */
const ifAny = (counts: Pick<PageWritten, 'older' | 'reverted' | 'unreadable'>): typeof counts =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => (count ?? 0) > 0));

/** The version of the decoding in resources.ts: increase it to have every record written again. */
const decoding = 3;

/**
 * Returns digests in hex of a page's records: of their text and everything else that decides their
 * rows, except the company, because several may list them. Undefined if no company lists them, or
 * for tables without digests: only large tables keep them.
 */
function digestsOf(
  resource: RecordResource,
  { companyId, apiVersion, usageOfRecords = false }: RecordPage,
  texts: readonly string[],
): string[] | undefined {
  if (companyId === null || resources[resource].table.digest === undefined) return undefined;
  // A record that becomes the source of usage is written again, with its usage.
  const source = resource === 'documents' && usageOfRecords ? ['usage'] : [];
  const context = JSON.stringify([decoding, apiVersion, ...source]);
  return texts.map((text) => createHash('sha256').update(context).update(text).digest('hex'));
}

/**
 * Counts records of a page whose rows have a newer state that was read some time before: the
 * service has gone back to older states, perhaps restored from a backup. States from events, which
 * the service may not show yet, and states just read, as a listing may lag behind, do not count.
 */
async function countOlder(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
): Promise<number> {
  const { updated, rawUpdated } = resources[resource].table;
  if (updated === undefined) return 0;
  const isOwn = isListing(resource, page)
    ? sql`and ${isListedBy(sql`${page.companyId}::uuid`)}`
    : sql``;
  const { rows } = await db.execute<{ older: number }>(sql`
    with listed as materialized (
      select distinct on (id) ${idOfRecord(resource)} as id, ${updatedOf('r')} as updated
      from jsonb_array_elements(${itemList(page)}) as item (r)
      order by id, updated desc nulls last
    )
    select count(*)::int as older
    from ${tableOf(resource)} ${row}
      join listed on listed.id = ${row.id}
    where ${row.id} = any(array(select id from listed))
      and ${row.updated} > listed.updated
      and ${row.deletedAt} is null
      and ${rawUpdated ? sql`${row.rawUpdated} = ${row.updated}` : sql`true`}
      and ${row.syncedAt} < ${page.readAt}::timestamptz
        - make_interval(secs => ${attemptPolicy.eventOnItsWaySeconds})
      ${isOwn}`);
  return rows[0]?.older ?? 0;
}

/** Records to write to a table, with the id of each. */
interface RecordSet {
  readonly page: RecordPage;
  readonly ids: readonly (string | null)[];
}

/** Documents and their usage, each read from its own endpoint. */
interface DocumentSets {
  readonly documentIds: readonly string[];
  /** Documents whose usage is incomplete. */
  readonly partialIds?: readonly string[] | undefined;
  /** Absent if the documents themselves have already been written. */
  readonly documents?: RecordSet | undefined;
  /** Absent if the documents have no usage. */
  readonly usage?: RecordSet | undefined;
  /** When the first of the reads began. */
  readonly readAt: string;
}

/**
 * Writes documents with their usage, so that no reader sees a bill without usage. Usage rows no
 * longer listed are tombstoned if usage was read completely. Refused records are stored separately.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble.
 */
export async function writeDocumentSets(db: Database, sets: DocumentSets): Promise<void> {
  const { documentIds, partialIds = [], documents, usage, readAt } = sets;
  const completeIds = documentIds.filter((id) => !partialIds.includes(id));
  try {
    await withTransaction(db, async (tx) => {
      await holdDocuments(tx, documentIds);
      if (documents !== undefined) {
        const page: RecordPage = { ...documents.page, confirms: true };
        await writePage(tx, 'documents', page, documents.ids);
      }
      if (usage !== undefined) await writePage(tx, 'usageData', usage.page, usage.ids);
      const seen = (usage?.ids ?? []).filter((id) => id !== null);
      const { companyId = null } = (usage ?? documents)?.page ?? {};
      await retireUsage(tx, completeIds, seen, readAt, companyId);
    });
  } catch (error) {
    throw warehouseFailure(error);
  }
}

/** Number of rows that this process adds before it checks whether a table was analysed. */
const rowsMin = 1_000;

/**
 * Analyses a new table once it has some pages of records. Until then Postgres plans for a few rows,
 * and autovacuum needs a minute or more. Each process decides once per table.
 */
export async function analyseYoung(
  { db, rowsAdded }: Pick<Warehouse, 'db' | 'rowsAdded'>,
  resource: RecordResource,
  inserted: number,
): Promise<void> {
  const before = rowsAdded.get(resource) ?? 0;
  if (before >= rowsMin || inserted === 0) return;
  rowsAdded.set(resource, before + inserted);
  if (before + inserted < rowsMin) return;
  const table = `${utility.schemaName}.${tableName(resource)}`;
  const [found] = await db
    .select({ young: sql<boolean>`reltuples < 0` })
    .from(sql`pg_class`)
    .where(sql`oid = ${table}::regclass`);
  if (found?.young === true) await db.execute(sql`analyze ${tableOf(resource)}`);
}
