import { and, desc, eq, gt, notExists, or, sql } from 'drizzle-orm';
import type { EventOutcome } from '../../contract/names.ts';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';

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
export async function countGivenUp(db: Executor, most: number) {
  const dead = lastOf(db, 'dead', most);
  const missing = lastOf(db, 'missing', most);
  // If the record was read or deleted after the event was recorded, the warehouse has its change.
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
    /** Dead events whose record was neither written nor deleted since. */
    dead: await db.$count(dead, isLost),
    /** Events that became missing within the last day. */
    missingLately: await db.$count(missing, sql`${missing.asideAt} > now() - interval '1 day'`),
  };
}
