import {
  and,
  asc,
  eq,
  isNotNull,
  isNull,
  not,
  or,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { FailureCode } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import {
  backOff,
  makeDue,
  postpone,
  refreshEach,
  type StaleRecord,
  staleOf,
} from '../catch-up/stale.ts';
import { array } from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { listedByCompanies, resources, tableOf } from '../resources.ts';
import { journal, settlements, unknownCompanies } from '../schema/metersync.ts';
import { companies, intervals, meters, sites, usageData } from '../schema/utility.ts';

/**
 * Which companies are known. An event is only a claim: a company gets a row once the service lists
 * it or a record of it, or a setting or a person names it. Events of other companies wait, and the
 * service is asked about each such company once while its answer is fresh.
 */

/** The code with which events wait whose company or meter the service does not know. */
export const unknownCode: FailureCode = 'UNKNOWN_TO_SERVICE';

type OfCompanies = PgTable & { readonly companyId?: PgColumn };

/**
 * Whether a table has a row of a company. For a plain `exists` the planner expects to meet one soon
 * when it reads all rows in order. `materialized` hides that one row is enough.
 */
export const anyOf = (
  table: OfCompanies,
  companyId: SQLWrapper,
  also = sql`true`,
): SQL => sql`exists (
  with theirs as materialized (
    select
    from ${table}
    where ${table.companyId} = ${companyId}
      and ${also}
  )
  select
  from theirs
)`;

/** Whether any record of a company was ever read from the service. */
export const recordRead = (companyId: SQLWrapper): SQL => {
  const read = listedByCompanies.map((resource) =>
    anyOf(resources[resource].table, companyId, isNotNull(resources[resource].table.raw)),
  );
  return sql`(${sql.join(read, sql` or `)})`;
};

/** Whether a company has a live row that the service confirmed. */
export async function isConfirmedCompany(db: Executor, companyId: string): Promise<boolean> {
  const isConfirmed = sql`(${companies.raw} is not null or ${recordRead(companies.id)})`;
  const live = await db
    .select({ id: companies.id })
    .from(companies)
    .where(and(eq(companies.id, companyId), isNull(companies.deletedAt), isConfirmed));
  return live.length > 0;
}

/** Whether the row of a company is live, or the service listed it once: it may have records still. */
const isKnown = or(isNull(companies.deletedAt), isNotNull(companies.raw));

/**
 * Returns those of some companies that are unknown, each with the seconds for which the service's
 * answer that it does not know the company is still fresh.
 */
export async function unknownAmong(
  db: Executor,
  companyIds: readonly string[],
): Promise<Map<string, number>> {
  if (companyIds.length === 0) return new Map();
  const { rows } = await db.execute<{ id: string; fresh: number }>(sql`
    select
      asked.id,
      coalesce((
        select extract(epoch from ${unknownCompanies.nextCheckAt} - clock_timestamp())
        from ${unknownCompanies}
        where ${unknownCompanies.companyId} = asked.id
      ), 0)::float8 as fresh
    from unnest(${array(companyIds, 'uuid')}) as asked (id)
    where not exists (
      select
      from ${companies}
      where ${companies.id} = asked.id
        and ${isKnown}
      offset 0
    )`);
  return new Map(rows.map(({ id, fresh }) => [id, Math.max(0, fresh)]));
}

/** Notes that the service does not know a company. It is asked again later each time. */
export async function noteUnknown(db: Executor, companyId: string): Promise<void> {
  const checkedAt = sql`clock_timestamp()`;
  const next = (checks: SQL): SQL => sql`clock_timestamp() + ${backOff(checks)}`;
  await db
    .insert(unknownCompanies)
    .values({ companyId, checks: 1, checkedAt, nextCheckAt: next(sql`0`) })
    .onConflictDoUpdate({
      target: unknownCompanies.companyId,
      set: {
        checks: sql`${unknownCompanies.checks} + 1`,
        checkedAt,
        nextCheckAt: next(sql`${unknownCompanies.checks}`),
      },
    });
}

/** Lists companies that were unknown when the service was last asked, the longest ago first. */
export async function unknownFor(db: Executor, limit: number): Promise<string[]> {
  const rows = await db
    .select({ id: unknownCompanies.companyId })
    .from(unknownCompanies)
    .orderBy(asc(unknownCompanies.checkedAt))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/**
 * Makes the events of companies due that were unknown and are known by now, also events that were
 * given up. Returns how many records are due.
 */
export async function reviveKnown(db: Database): Promise<number> {
  return await withTransaction(db, async (tx) => {
    const { rows: found } = await tx.execute<{ id: string }>(sql`
      delete from ${unknownCompanies}
      where ${unknownCompanies.companyId} = any(array(
        select asked.company_id
        from ${unknownCompanies} asked
          cross join lateral (
            select
            from ${companies}
            where ${companies.id} = asked.company_id
              and ${isKnown}
            offset 0
          ) known
      ))
      returning ${unknownCompanies.companyId} as id`);
    if (found.length === 0) return 0;
    const owners = array(found.map(({ id }) => id).sort(), 'text');
    const { rows: missing } = await tx.execute<StaleRecord>(sql`
      with named as materialized (
        select distinct e.kind, e.record_id
        from unnest(${owners}) as found (id)
          cross join lateral (
            select ${journal.kind}, ${journal.recordId}
            from ${journal}
            where ${journal.companyId} = found.id::uuid
            offset 0
          ) e
      )
      delete from ${settlements}
      where ctid = any(array(
        select settled.ctid
        from named
          cross join lateral (
            select ctid, outcome, error_code
            from ${settlements}
            where kind = named.kind
              and record_id = named.record_id
            offset 0
          ) settled
        where settled.outcome = 'missing'
          and settled.error_code = ${unknownCode}
      ))
      returning ${settlements.kind}, ${settlements.recordId}`);
    await refreshEach(tx, missing);
    let due = 0;
    for (const kind of ['connections', 'documents'] as const)
      for (const { id } of found) due += await makeDue(tx, staleOf.owner(kind, id));
    return due;
  });
}

/** Whether the service lists a meter; without a row of it, whether usage or readings name it. */
export async function isKnownMeter(db: Executor, meterId: string): Promise<boolean> {
  const result = await db.execute<{ exists: boolean }>(sql`
    select coalesce(
      (
        select ${meters.deletedAt} is null
        from ${meters}
        where ${meters.id} = ${meterId}
      ),
      exists (
        select
        from ${usageData}
        where ${usageData.meterId} = ${meterId}
          and ${usageData.deletedAt} is null
      )
      or exists (
        select
        from ${intervals}
        where ${intervals.meterId} = ${meterId}
      )
    ) as exists`);
  return result.rows[0]?.exists ?? false;
}

/**
 * Backs off the due records of an unknown company or meter. After `olderStateAttemptsMax` attempts
 * their events are `missing`, and rows that only these events wrote are tombstoned.
 */
export async function postponeUnknown(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: string,
  leastSeconds = 0,
): Promise<void> {
  const { givenUp } = await postpone(
    db,
    staleOf.owner(kind, owner),
    { code: unknownCode, message: `${unknownCode}: ${reason}` },
    { attemptsMax: recordPolicy.olderStateAttemptsMax, leastSeconds },
  );
  if (kind === 'intervals' || givenUp.length === 0) return;
  await db.execute(sql`
    update ${tableOf(kind)} set
      deleted_at = clock_timestamp(),
      deleted_reason = 'not_found'
    where id = any(${array(givenUp, 'uuid')})
      and raw is null
      and deleted_at is null`);
}

/** Tombstones a company that the service does not have, and its sites, unless a record was read. */
export async function tombstoneUnread(db: Executor, companyId: string): Promise<void> {
  const gone = { deletedAt: sql`clock_timestamp()`, deletedReason: 'not_found' } as const;
  const unread = not(recordRead(sql`${companyId}::uuid`));
  for (const { table, id } of [
    { table: sites, id: sites.companyId },
    { table: companies, id: companies.id },
  ])
    await db
      .update(table)
      .set(gone)
      .where(and(eq(id, companyId), isNull(table.raw), isNull(table.deletedAt), unread));
}
