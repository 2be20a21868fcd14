import { count, countDistinct, desc, min, type SQL, sql } from 'drizzle-orm';
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
const lastOf = (db: Executor, outcome: GivenUpOutcome, most: number) =>
  db
    .select()
    .from(journal)
    .where(sql`${journal.aside} = ${sql.raw(`'${outcome}'`)}`)
    .orderBy(desc(journal.asideAt))
    .limit(most)
    .as('e');

/** Counts events that were given up, among the last `most` of each outcome. */
export async function countGivenUp(db: Executor, most: number): Promise<GivenUp> {
  const result = await db.execute<GivenUp & Record<string, unknown>>(sql`
    select
      (
        select count(*)::int
        from ${lastOf(db, 'dead', most)}
        where not ${isWrittenSince('document', documents)}
          and not ${isWrittenSince('connection', connections)}
      ) as dead,
      (
        select count(*)::int
        from ${lastOf(db, 'missing', most)}
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
export type GivenUpGroup = Awaited<ReturnType<typeof readGivenUp>>[number];

/**
 * Groups dead or missing events by failure, most first. It looks at the last
 * `limits.givenUpMax` of them and one more.
 */
export async function readGivenUp(db: Executor, outcome: GivenUpOutcome) {
  const last = lastOf(db, outcome, limits.givenUpMax + 1);
  return await db
    .select({
      code: last.errorCode,
      events: count(),
      companies: countDistinct(last.companyId),
      /** When the first and the last of them came. */
      since: sql<string>`min(${last.receivedAt})::text`,
      until: sql<string>`max(${last.receivedAt})::text`,
      /** The id and the error of one. */
      example: sql<string>`min(${last.id})`,
      error: min(last.error),
    })
    .from(last)
    .groupBy(last.errorCode)
    .orderBy(desc(count()), last.errorCode);
}
