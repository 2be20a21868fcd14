import { sql } from 'drizzle-orm';
import { array, type RowOf, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { refusedId } from '../records/rejected-records.ts';
import { journal, rejectedRecords } from '../schema/metersync.ts';

/** An event of the journal about a record. */
export interface EventBehind {
  readonly id: string;
  readonly type: string;
  readonly outcome: string;
  readonly occurredAt: string | null;
  readonly receivedAt: string;
}

const eventsBehindMax = 5;

/**
 * Reads the last events about each record; for readings, whose ids begin with their meter, about
 * the meter.
 */
export async function eventsBehind(
  db: Executor,
  recordIds: readonly string[],
): Promise<Map<string, EventBehind[]>> {
  const result = await db.execute<{ record: string; events: EventBehind[] }>(sql`
    select
      record,
      jsonb_agg(
        jsonb_build_object(
          'id', behind.id,
          'type', behind.type,
          'outcome', behind.outcome,
          'occurredAt', behind.occurred_at::text,
          'receivedAt', behind.received_at::text
        )
        order by behind.recorded_at desc
      ) as events
    from unnest(${array(recordIds, 'text')}) as record
      cross join lateral (
        select *
        from ${journal}
        where ${journal.recordId} = record
        order by ${journal.recordedAt} desc
        limit ${eventsBehindMax}
      ) behind
    group by record`);
  return new Map(result.rows.map(({ record, events }) => [record, events]));
}

/**
 * Reads why Postgres refused records that the warehouse lacks, by resource and id; readings by
 * meter and start.
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
  const refused = await db.execute<Refused>(sql`
    select
      ${rejectedRecords.resource},
      asked.id,
      ${rejectedRecords.error}
    from ${rejectedRecords}
      join ${asked} using (resource, record_id)`);
  return new Map(refused.rows.map(({ resource, id, error }) => [`${resource} ${id}`, error]));
}

type Refused = RowOf<typeof rejectedRecords.resource | typeof rejectedRecords.error> & {
  readonly id: string;
};
