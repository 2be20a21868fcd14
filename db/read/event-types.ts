import { count, desc, ne, sql } from 'drizzle-orm';
import { probeEventType, type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { connections, documents, intervals } from '../schema/utility.ts';

/** Number of the newest events in which `typesSeen` looks for types. */
export const typesAmong = 10_000;

/** Counts the latest events by type, without probes, which are not events of the service. */
export async function typesSeen(db: Executor): Promise<ReadonlyMap<string, number>> {
  const newest = db
    .select({ type: journal.type })
    .from(journal)
    .orderBy(desc(journal.receivedAt), desc(journal.id))
    .limit(typesAmong)
    .as('newest');
  const seen = await db
    .select({ type: newest.type, events: count() })
    .from(newest)
    .where(ne(newest.type, probeEventType))
    .groupBy(newest.type);
  return new Map(seen.map(({ type, events }) => [type, events]));
}

const tables = { connection: connections, document: documents, interval: intervals };

/** Lists the kinds of events whose records the warehouse holds. */
export async function kindsHeld(db: Executor): Promise<RecordEventKind[]> {
  const held: RecordEventKind[] = [];
  for (const kind of recordEventKinds) {
    const [any] = await db.select({ one: sql`1` }).from(tables[kind]).limit(1);
    if (any !== undefined) held.push(kind);
  }
  return held;
}
