import { and, count, countDistinct, desc, eq, gt, min, notExists, or, sql } from 'drizzle-orm';
import { limits } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { literal } from '../connection/arrays.ts';
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
  const dead = lastOf(db, 'dead', most);
  const missing = lastOf(db, 'missing', most);
  // After the event came: then the warehouse has its change.
  const notWrittenSince = (kind: string, table: typeof documents | typeof connections) =>
    notExists(
      db
        .select({ one: sql`1` })
        .from(table)
        .where(
          and(
            eq(dead.kind, kind),
            eq(table.id, sql`metersync.uuid_of(${dead.recordId})`),
            or(
              gt(table.deletedAt, dead.recordedAt),
              and(
                gt(table.syncedAt, dead.recordedAt),
                sql`coalesce(${table.rawUpdated} >= ${dead.occurredAt}, true)`,
              ),
            ),
          ),
        )
        .offset(literal(0)),
    );
  const isLost = and(
    notWrittenSince('document', documents),
    notWrittenSince('connection', connections),
  );
  return {
    dead: await db.$count(dead, isLost),
    missingLately: await db.$count(missing, sql`${missing.asideAt} > now() - interval '1 day'`),
  };
}

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
