import { type SQL, sql } from 'drizzle-orm';
import { eventKinds } from '../../contract/event.ts';
import { type FailureCode, parkingCodes } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { unlessRecordedAnew, waitingAgain } from '../events/settling.ts';
import { journal, parked, runs, staleRecords } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';
import { backOff } from './postpone.ts';
import { eventKind, keyOf, refreshEach, type StaleKind, type StaleRecord } from './stale.ts';

/** Whether the service is parked: it refused for a reason that holds for every request. */
export const serviceParked: SQL = sql`exists (
      select
      from ${parked}
      where next_attempt_at > clock_timestamp()
    )`;

/**
 * Parks all requests to the service, longer with each refusal. Refusals at the same time count as
 * one attempt.
 */
export async function parkService(db: Executor, code: FailureCode, message: string): Promise<void> {
  const until = (attempts: SQL): SQL =>
    sql`clock_timestamp() + ${backOff(attempts, recordPolicy.parkedSeconds)}`;
  await db
    .insert(parked)
    .values({ code, message, attempts: 1, nextAttemptAt: until(sql`0`) })
    .onConflictDoUpdate({
      target: parked.code,
      set: {
        message,
        attempts: sql`${parked.attempts} + 1`,
        nextAttemptAt: until(sql`${parked.attempts}`),
      },
      setWhere: sql`${parked.nextAttemptAt} <= clock_timestamp()`,
    });
}

/**
 * Whether the noted state of the service still holds. A noted outage lapses: while nothing is
 * asked, no success can end it.
 */
export const stillParked: SQL = sql`(
        ${parked.code} <> 'SERVICE_OUTAGE'
        or ${parked.nextAttemptAt} > clock_timestamp() - make_interval(secs => ${recordPolicy.outageSeconds})
      )`;

/** Notes that the service fails every request. Nothing is parked: each failed work tries again. */
export async function noteOutage(db: Executor, message: string): Promise<void> {
  const now = sql`clock_timestamp()`;
  await db
    .insert(parked)
    .values({ code: 'SERVICE_OUTAGE', message, attempts: 1, nextAttemptAt: now })
    .onConflictDoUpdate({
      target: parked.code,
      set: {
        message,
        since: sql`case when ${stillParked} then ${parked.since} else ${now} end`,
        attempts: sql`case when ${stillParked} then ${parked.attempts} + 1 else 1 end`,
        nextAttemptAt: now,
      },
    });
}

/** Reads the failures for which the service, or the work of some of the given owners, is parked. */
export async function parkedCodes(
  db: Executor,
  kind: CatchUpKind,
  owners: readonly string[],
): Promise<{ service: FailureCode[]; owners: Map<string, FailureCode[]> }> {
  const { rows } = await hot(db, 'parkedCodes').execute<{
    owner: string | null;
    codes: FailureCode[];
  }>(sql`
    select null as owner, array_agg(code) as codes
    from ${parked}
    having count(*) > 0
    union all
    select asked.owner, array_agg(distinct latest.error_code)
    from unnest(${array(owners, 'text')}) as asked (owner)
      cross join lateral (
        -- Parked records are due last; records that came since are due now.
        select error_code
        from ${staleRecords}
        where queue = ${keyOf(eventKind[kind], sql`asked.owner`)}
        order by due_at desc
        limit 20
      ) latest
    where latest.error_code = any(${array(parkingCodes, 'text')})
    group by asked.owner`);
  return {
    service: rows.flatMap(({ owner, codes }) => (owner === null ? codes : [])),
    owners: new Map(rows.flatMap(({ owner, codes }) => (owner === null ? [] : [[owner, codes]]))),
  };
}

/** How many events were revived, and the catch-ups to wake for them. */
export interface Revived {
  readonly events: number;
  readonly kinds: readonly CatchUpKind[];
}

/**
 * Makes work due at once that waits because of one of these failures. With `over` the cause is known to be
 * gone, and the service is no longer parked. Without it the service is only tried again, starting with the
 * first pause.
 */
export async function reviveParked(
  db: Database,
  codes: readonly FailureCode[],
  how: { over: boolean },
): Promise<Revived> {
  // One transaction: an event that is pending again but has no stale record would stay so forever.
  return await withTransaction(db, (tx) => reviveTogether(tx, codes, how));
}

async function reviveTogether(
  db: Executor,
  codes: readonly FailureCode[],
  { over }: { over: boolean },
): Promise<Revived> {
  const chosen = array(codes, 'text');
  const isChosen = sql`${parked.code} = any(${chosen})`;
  if (over) await db.delete(parked).where(isChosen);
  else {
    const anew = { attempts: 0, nextAttemptAt: sql`clock_timestamp()` };
    await db.update(parked).set(anew).where(isChosen);
  }
  // Missing events are tried again only when the cause is known to be gone.
  const found = over ? [] : await reopenMissing(db, chosen);
  await refreshEach(db, found);
  const result = await db.execute<{ kind: StaleKind; events: number }>(sql`
    with parked as materialized (
      select s.key
      from unnest(${chosen}) as asked (code)
        cross join lateral (
          select key, due_at
          from ${staleRecords}
          where error_code = asked.code
          offset 0
          for update skip locked
        ) s
      where s.due_at > clock_timestamp()
    ), revived as (
      update ${staleRecords} s set
        due_at = clock_timestamp(),
        attempts = 0,
        tried_since = null
      where s.key = any(array(select key from parked))
      returning s.kind, s.events
    )
    select kind, sum(events)::int as events
    from revived
    group by kind`);
  const events = new Map(result.rows.map((row) => [row.kind, row.events]));
  for (const { kind } of found) events.set(kind, (events.get(kind) ?? 0) + 1);
  return {
    events: [...events.values()].reduce((sum, count) => sum + count, 0),
    kinds: [...events.keys()].map((kind) => eventKinds[kind].plural),
  };
}

/** Makes events pending again that are missing for one of these failures. Returns the record of each. */
async function reopenMissing(db: Executor, codes: SQL): Promise<StaleRecord[]> {
  const { rows } = await db.execute<StaleRecord>(sql`
    with missing as materialized (
      select id
      from ${journal}
      where aside = 'missing'
        and error_code = any(${codes})
      order by aside_at
      ${unlessRecordedAnew}
    )
    update ${journal} set
      ${waitingAgain}
    where id = any(array(select id from missing))
    returning kind, case kind when 'interval' then id else record_id end as record_id`);
  return rows;
}

/** Whether a company has a live row: failures of a company that is gone need no retry. */
export const livesCompany = (companyId: SQL): SQL => sql`exists (
        select
        from ${companies} c
        where c.id = ${companyId}
          and c.deleted_at is null
        offset 0
      )`;

/**
 * Reads live companies whose last read failed for one of these reasons. `everything` is true when
 * the list of companies itself could not be read.
 */
export async function failedParts(
  db: Executor,
  codes: readonly FailureCode[],
): Promise<{ companies: string[]; everything: boolean }> {
  const result = await db.execute<{ company_id: string | null }>(sql`
    select distinct company_id
    from (
      select distinct on (company_id, resource) company_id, state, error_code
      from ${runs}
      where resource is not null
      order by company_id, resource, started_at desc
    ) last
    where state in ('failed', 'partial')
      and error_code = any(${array(codes, 'text')})
      and (company_id is null or ${livesCompany(sql`company_id`)})
    order by company_id`);
  const companies = result.rows.flatMap(({ company_id }) => company_id ?? []);
  return { companies, everything: companies.length < result.rows.length };
}
