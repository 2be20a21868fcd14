import {
  and,
  eq,
  gt,
  isNotNull,
  isNull,
  lte,
  not,
  notExists,
  or,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { FailureCode } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { payloadOf } from '../events/items.ts';
import { postpone } from '../events/postpone.ts';
import { eventKind, hasPending, isPending, pendingOf, waitingForCompany } from '../events/queue.ts';
import { listedByCompanies, resources } from '../resources.ts';
import { journal, runs } from '../schema/metersync.ts';
import {
  companies,
  connections,
  documents,
  intervals,
  meters,
  sites,
  usageData,
} from '../schema/utility.ts';

/**
 * Strangers are companies and meters that are only known from events. An event is only a claim: a
 * company gets a row once the service lists it, a setting names it, or a record of it is read.
 * Until then its events wait, and the service is asked about it.
 */

/** The code with which events of a stranger wait. */
export const strangerCode: FailureCode = 'UNKNOWN_TO_SERVICE';

type OfCompanies = PgTable & { readonly companyId?: PgColumn };

/**
 * Whether a table has a row of a company. `materialized` hides that one row is enough: otherwise
 * the planner may read all rows in order, because it expects to find a match soon.
 */
export function anyOf(table: OfCompanies, companyId: SQLWrapper, also = sql`true`): SQL {
  return sql`exists (
  with theirs as materialized (
    select
    from ${table}
    where ${table.companyId} = ${companyId}
      and ${also}
  )
  select
  from theirs
)`;
}

/** Whether any record of a company was ever read from the service. */
export const recordRead = (companyId: SQLWrapper): SQL => {
  const read = listedByCompanies.map((resource) =>
    anyOf(resources[resource].table, companyId, isNotNull(resources[resource].table.raw)),
  );
  return sql`(${sql.join(read, sql` or `)})`;
};

/** Whether a company has a live row that the service confirmed. */
export async function isConfirmedCompany(db: Executor, companyId: string): Promise<boolean> {
  const { id, raw, deletedAt } = companies;
  const live = await db
    .select({ id })
    .from(companies)
    .where(and(eq(id, companyId), isNull(deletedAt), or(isNotNull(raw), recordRead(id))));
  return live.length > 0;
}

/** Whether the service has a meter, by its row or else by usage or readings that name it. */
async function meterExists(db: Executor, meterId: string): Promise<boolean> {
  const { id, deletedAt } = meters;
  const [meter] = await db.select({ deletedAt }).from(meters).where(eq(id, meterId));
  if (meter !== undefined) return meter.deletedAt === null;
  const used = await db
    .select({ id: usageData.id })
    .from(usageData)
    .where(and(eq(usageData.meterId, meterId), isNull(usageData.deletedAt)))
    .limit(1);
  if (used.length > 0) return true;
  const read = await db
    .select({ meterId: intervals.meterId })
    .from(intervals)
    .where(eq(intervals.meterId, meterId))
    .limit(1);
  return read.length > 0;
}

/** Whether an owner, a company or (for intervals) a meter, is only known from events. */
export async function isStranger(db: Executor, kind: CatchUpKind, owner: string): Promise<boolean> {
  return !(await (kind === 'intervals' ? meterExists(db, owner) : isConfirmedCompany(db, owner)));
}

/** Selects whether only events name a live company and no run has begun to read it. */
export function selectNeverRead(db: Executor, companyId: string) {
  const { id, syncedAt, firstSyncedAt, deletedAt } = companies;
  const unlisted = or(isNull(syncedAt), gt(syncedAt, firstSyncedAt));
  return db
    .select({ neverRead: sql<boolean>`${unlisted} and not ${anyOf(runs, id)}` })
    .from(companies)
    .where(and(eq(id, companyId), isNull(deletedAt)));
}

/**
 * Inserts the row of a stranger once a record of it was read. Returns undefined if the company
 * still has no row, and otherwise what `selectNeverRead` selects.
 */
export async function admitCompany(
  db: Executor,
  companyId: string,
): Promise<{ readonly neverRead: boolean } | undefined> {
  const [existing] = await selectNeverRead(db, companyId);
  if (existing !== undefined) return existing;
  const header = await headerIfRead(db, companyId);
  if (header === undefined) return undefined;
  const row = { id: companyId, ...header };
  await db.insert(companies).values(row).onConflictDoUpdate(revival(companies));
  return (await selectNeverRead(db, companyId))[0];
}

/** The `on conflict` clause that restores a row that only events wrote. */
const revival = <Table extends typeof companies | typeof sites>({ id, raw, deletedAt }: Table) => ({
  target: id,
  set: { absentSince: null, absentBy: null },
  setWhere: sql`${deletedAt} is not null and ${raw} is null`,
});

/** Reads what a company's newest event says about it; undefined unless a record of it was read. */
async function headerIfRead(db: Executor, companyId: string) {
  const read = await db
    .select({})
    .from(sql`(select) one`)
    .where(recordRead(sql`${companyId}::uuid`));
  if (read.length === 0) return undefined;
  const company = sql`said.payload -> 'company'`;
  const [header] = await db
    .select({
      externalId: sql<string | null>`${company} ->> 'externalId'`,
      publicId: sql<string | null>`${company} ->> 'publicId'`,
      name: sql<string | null>`${company} ->> 'name'`,
    })
    .from(journal)
    .crossJoinLateral(sql`${payloadOf(journal.id)} said`)
    .where(eq(journal.companyId, companyId))
    .orderBy(sql`${journal.occurredAt} desc nulls last`, company)
    .limit(1);
  return header ?? {};
}

type RecordKind = 'connections' | 'documents';

/**
 * Selects sites without a row that waiting events of these records name, if the record was read in
 * the state that the event names, or a newer state.
 */
export function sitesToAdmit(db: Executor, kind: RecordKind, recordIds: readonly string[]) {
  const record = kind === 'documents' ? documents : connections;
  const read = db
    .select({ rawUpdated: sql`${record.rawUpdated}`.as('read_until') })
    .from(sql`${record}`)
    .where(and(eq(record.id, sql`asked.record_id::uuid`), isNotNull(record.raw)))
    .offset(literal(0))
    .as('read');
  const event = db
    .select({ id: journal.id, companyId: journal.companyId, occurredAt: journal.occurredAt })
    .from(journal)
    .where(
      and(
        eq(journal.recordId, sql`asked.record_id`),
        eq(journal.kind, eventKind[kind]),
        isPending,
        lte(journal.occurredAt, sql`read.read_until`),
      ),
    )
    .offset(literal(0))
    .as('event');
  const siteId = sql<string>`metersync.uuid_of(metersync.id_of(named.site))`;
  const existing = db
    .select({})
    .from(sites)
    .where(and(eq(sites.id, siteId), or(isNull(sites.deletedAt), isNotNull(sites.raw))))
    .offset(literal(0));
  return db
    .select({
      id: siteId.as('site_id'),
      companyId: event.companyId,
      name: sql<string | null>`named.site ->> 'name'`.as('site_name'),
      occurredAt: event.occurredAt,
    })
    .from(sql`unnest(${array(recordIds, 'text')}) as asked (record_id)`)
    .crossJoinLateral(read)
    .crossJoinLateral(event)
    .crossJoinLateral(sql`${payloadOf(event.id)} said`)
    .crossJoinLateral(namedIn[kind])
    .where(and(isNotNull(siteId), notExists(existing)));
}

/** The sites that the payload of an event names, as a table `named (site)`. */
const namedIn: Readonly<Record<RecordKind, SQL>> = {
  connections: sql`(
    select relation -> 'site' as site
    from jsonb_array_elements(metersync.elements(said.payload -> 'sitesRelations')) relation
  ) named`,
  documents: sql`(select said.payload -> 'site' as site) named`,
};

/** Inserts the sites of `sitesToAdmit`. Existing rows stay, because records outrank events. */
export async function admitSites(
  db: Executor,
  kind: RecordKind,
  recordIds: readonly string[],
): Promise<void> {
  const found = sitesToAdmit(db, kind, recordIds).as('found');
  const newest = await db
    .selectDistinctOn([found.id], {
      id: sql<string>`${found.id}`,
      companyId: found.companyId,
      name: sql<string | null>`${found.name}`,
    })
    .from(found)
    .orderBy(found.id, sql`${found.occurredAt} desc nulls last`, found.name);
  if (newest.length === 0) return;
  await db.insert(sites).values(newest).onConflictDoUpdate(revival(sites));
}

/**
 * Backs off the due events of a stranger. After `olderStateAttemptsMax` attempts its events are
 * `missing`, and rows that only events wrote are tombstoned. A later read reopens its events.
 */
export async function postponeStranger(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: string,
): Promise<void> {
  const givenUp = await postpone(
    db,
    pendingOf.owner(kind, owner),
    { code: strangerCode, message: `${strangerCode}: ${reason}` },
    { attemptsMax: recordPolicy.olderStateAttemptsMax },
  );
  if (kind !== 'intervals' && givenUp.length > 0) await tombstoneUnverified(db, owner);
}

/**
 * Tombstones documents and connections of a company that only events wrote and for which no event
 * waits. Also tombstones its sites and the company if only events wrote them, no record of the
 * company was read, and no event waits for any of its records.
 */
export async function tombstoneUnverified(db: Executor, companyId: string): Promise<void> {
  const tombstone = async (table: WrittenByEvents, ofCompany: SQL, also: SQL | undefined) => {
    await db
      .update(table)
      .set({ absentSince: sql`clock_timestamp()`, absentBy: 'not_found' })
      .where(and(ofCompany, isNull(table.raw), isNull(table.deletedAt), also));
  };
  for (const [table, kind] of [
    [documents, 'document'],
    [connections, 'connection'],
  ] as const) {
    const waits = hasPending(kind, sql`${table.id}::text`);
    await tombstone(table, eq(table.companyId, companyId), not(waits));
  }
  const isAlone = and(
    not(recordRead(sql`${companyId}::uuid`)),
    notExists(waitingForCompany(db, companyId)),
  );
  await tombstone(sites, eq(sites.companyId, companyId), isAlone);
  await tombstone(companies, eq(companies.id, companyId), isAlone);
}

type WrittenByEvents = typeof documents | typeof connections | typeof sites | typeof companies;
