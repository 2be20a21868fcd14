import { type SQL, sql } from 'drizzle-orm';
import { type FailureCode, parkingCodes } from '../contract/failures.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';
import { waitsOf } from './waiting.ts';

/** Whether nothing may be asked of the service now, as it refused for a reason that is the same for all. */
export const serviceParked: SQL = sql`exists (
  select from metersync.parked where next_attempt_at > clock_timestamp())`;

/**
 * Parks everything that is asked of the service, for 10 seconds at first and a quarter of an hour in the end. Those
 * who were refused at the same time count as one attempt.
 */
export async function parkService(db: Executor, code: FailureCode, message: string): Promise<void> {
  const until = (attempts: SQL): SQL =>
    sql`clock_timestamp() + least(interval '15 minutes', interval '10 seconds' * power(2, least(${attempts}, 12)))`;
  await db.execute(sql`
    insert into metersync.parked as p (code, message, attempts, next_attempt_at)
    values (${code}, ${message}, 1, ${until(sql`0`)})
    on conflict (code) do update set
      message = excluded.message, attempts = p.attempts + 1, next_attempt_at = ${until(sql`p.attempts`)}
    where p.next_attempt_at <= clock_timestamp()`);
}

/** The failures for which the service, or the work of some of the given owners, is parked. */
export async function parkedCodes(
  db: Executor,
  kind: CatchUpKind,
  owners: readonly string[],
): Promise<{ service: FailureCode[]; owners: Map<string, FailureCode[]> }> {
  const service = await db.execute<{ code: FailureCode }>(sql`select code from metersync.parked`);
  const owner = kind === 'intervals' ? sql`record_id` : sql`company_id`;
  const theirs = await db.execute<{ owner: string; codes: FailureCode[] }>(sql`
    select ${owner}::text as owner, array_agg(distinct error_code) as codes from metersync.events
    where ${waitsOf(kind, owners)} and error_code = any(${array(parkingCodes, 'text')})
    group by ${owner}`);
  return {
    service: service.rows.map(({ code }) => code),
    owners: new Map(theirs.rows.map((row) => [row.owner, row.codes])),
  };
}

/** What was revived, and the catch-ups to wake for it. */
export interface Revived {
  readonly events: number;
  readonly kinds: readonly CatchUpKind[];
}

/**
 * Makes due at once what waits for one of these failures. `over` ends the parking of the service: the cause is known
 * to be gone; otherwise it is only tried again, from the first pause on.
 */
export async function reviveParked(
  db: Executor,
  codes: readonly FailureCode[],
  { over }: { over: boolean },
): Promise<Revived> {
  const chosen = array(codes, 'text');
  // What was given up is looked for again only when somebody says that the cause is gone.
  const givenUp = over ? sql`` : sql`or outcome = 'missing' and error_code = any(${chosen})`;
  await db.execute(
    over
      ? sql`delete from metersync.parked where code = any(${chosen})`
      : sql`update metersync.parked set attempts = 0, next_attempt_at = clock_timestamp() where code = any(${chosen})`,
  );
  const result = await db.execute<{ kind: CatchUpKind; events: number }>(sql`
    with revived as (
      update metersync.events e set outcome = 'pending', next_attempt_at = clock_timestamp(), attempts = 0
      from (
        select id from metersync.events
        where outcome = 'pending' and error_code = any(${chosen}) and next_attempt_at > clock_timestamp() ${givenUp}
        order by id for update skip locked
      ) parked
      where e.id = parked.id returning e.kind
    )
    select kind || 's' as kind, count(*)::int as events from revived group by 1`);
  return {
    events: result.rows.reduce((sum, { events }) => sum + events, 0),
    kinds: result.rows.map(({ kind }) => kind),
  };
}

/** Companies whose last reading failed for one of these reasons; `everything` when the list of them could not be read. */
export async function failedParts(
  db: Executor,
  codes: readonly FailureCode[],
): Promise<{ companies: string[]; everything: boolean }> {
  const result = await db.execute<{ company_id: string | null }>(sql`
    select distinct company_id from (
      select distinct on (company_id, resource) company_id, state, error_code from metersync.runs
      where resource is not null order by company_id, resource, started_at desc
    ) last
    where state in ('failed', 'partial') and error_code = any(${array(codes, 'text')})
    order by company_id`);
  const companies = result.rows.flatMap(({ company_id }) => company_id ?? []);
  return { companies, everything: companies.length < result.rows.length };
}
