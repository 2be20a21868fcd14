import { and, desc, eq, sql } from 'drizzle-orm';
import { array, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { refusedId } from '../records/rejected-records.ts';
import { journal, rejectedRecords } from '../schema/metersync.ts';

/** An event of the journal about a record. */
export type EventBehind = Awaited<ReturnType<typeof readBehind>>[number]['event'];

const eventsBehindMax = 5;

async function readBehind(db: Executor, recordIds: readonly string[]) {
  const behind = db
    .select()
    .from(journal)
    .where(eq(journal.recordId, sql`given.record`))
    .orderBy(desc(journal.recordedAt))
    .limit(eventsBehindMax)
    .as('behind');
  const { id, type, outcome, occurredAt, receivedAt } = behind;
  return await db
    .select({
      record: sql<string>`given.record`,
      event: { id, type, outcome, occurredAt, receivedAt },
    })
    .from(sql`unnest(${array(recordIds, 'text')}) as given (record)`)
    .crossJoinLateral(behind)
    .orderBy(desc(behind.recordedAt));
}

/** Reads the latest events about each record; events of readings are found by their meter. */
export async function eventsBehind(
  db: Executor,
  recordIds: readonly string[],
): Promise<Map<string, EventBehind[]>> {
  const byRecord = Map.groupBy(await readBehind(db, recordIds), ({ record }) => record);
  return new Map([...byRecord].map(([record, rows]) => [record, rows.map(({ event }) => event)]));
}

/**
 * Reads why Postgres refused records that the warehouse lacks. Keys of the result are the resource
 * and the id of a record; a reading has its meter and its start as its id.
 */
export async function refusals(
  db: Executor,
  records: readonly { readonly resource: string; readonly id: string }[],
): Promise<Map<string, string>> {
  const asked = unnested('asked', records, [
    ['resource', 'text', ({ resource }) => resource],
    ['id', 'text', ({ id }) => id],
    ['record_id', 'text', ({ id }) => refusedId(id)],
  ]);
  const { resource, recordId, error } = rejectedRecords;
  const refused = await db
    .select({ resource, id: sql<string>`asked.id`, error })
    .from(rejectedRecords)
    .innerJoin(asked, and(eq(resource, sql`asked.resource`), eq(recordId, sql`asked.record_id`)));
  return new Map(refused.map((row) => [`${row.resource} ${row.id}`, row.error]));
}
