import { type SQL, sql } from 'drizzle-orm';
import { limits } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';

/** Events that were given up. */
export interface GivenUp {
  /** Events whose record was neither written nor deleted since. */
  readonly dead: number;
  /** Events that became missing within the last day. */
  readonly missingLately: number;
}

type GivenUpOutcome = Extract<EventOutcome, 'dead' | 'missing'>;

/** The last events with an outcome. The outcome is not a parameter, so that a partial index can be used. */
const lastOf = (outcome: GivenUpOutcome, most: number): SQL => sql`(
        select *
        from ${journal}
        where aside = ${sql.raw(`'${outcome}'`)}
        order by aside_at desc
        limit ${most}
      )`;

/** Counts events that were given up, among the last `most` of each outcome. */
export async function countGivenUp(db: Executor, most: number): Promise<GivenUp> {
  const result = await db.execute<GivenUp & Record<string, unknown>>(sql`
    select
      (
        select count(*)::int
        from ${lastOf('dead', most)} e
        where not ${isWrittenSince('document', documents)}
          and not ${isWrittenSince('connection', connections)}
      ) as dead,
      (
        select count(*)::int
        from ${lastOf('missing', most)} e
        where e.aside_at > now() - interval '1 day'
      ) as "missingLately"`);
  return result.rows[0] ?? { dead: 0, missingLately: 0 };
}

/**
 * Whether the record of an event was written or deleted after the event came: then the warehouse
 * has its change.
 */
const isWrittenSince = (
  kind: string,
  table: typeof documents | typeof connections,
): SQL => sql`exists (
          select from ${table} r
          where e.kind = ${kind}
            and r.id = metersync.uuid_of(e.record_id)
            and (
              r.deleted_at > e.recorded_at
              or r.synced_at > e.recorded_at
                and coalesce(r.raw_updated >= e.occurred_at, true)
            )
          offset 0
        )`;

/** Events that were given up for the same failure. */
export interface GivenUpGroup {
  readonly code: string | null;
  readonly events: number;
  /** Companies that they name. */
  readonly companies: number;
  /** When the first and the last of them came. */
  readonly since: string;
  readonly until: string;
  /** The id and the error of one. */
  readonly example: string;
  readonly error: string | null;
}

/**
 * Groups dead or missing events by failure, most first. It looks at the last
 * `limits.givenUpMax` of them and one more.
 */
export async function readGivenUp(db: Executor, outcome: GivenUpOutcome): Promise<GivenUpGroup[]> {
  const result = await db.execute<GivenUpGroup & Record<string, unknown>>(sql`
    select
      e.error_code as code,
      count(*)::int as events,
      count(distinct e.company_id)::int as companies,
      min(e.received_at)::text as since,
      max(e.received_at)::text as until,
      min(e.id) as example,
      min(e.error) as error
    from ${lastOf(outcome, limits.givenUpMax + 1)} e
    group by e.error_code
    order by count(*) desc, e.error_code`);
  return result.rows;
}
