import { eq, sql } from 'drizzle-orm';
import type { DeliveredEvent } from '../../contract/event.ts';
import { batches } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';

/** A kept event. */
export interface KeptEvent {
  readonly id: string;
  readonly outcome: EventOutcome;
  /** How it was delivered; undefined once its payload was dropped. */
  readonly delivered: DeliveredEvent | undefined;
}

/** Reads kept events by their ids, to record them again. */
export async function readKept(db: Executor, ids: readonly string[]): Promise<KeptEvent[]> {
  const { id, outcome, receivedAt } = journal;
  const { payload, body } = eventPayloads;
  const kept: KeptEvent[] = [];
  for (let from = 0; from < ids.length; from += batches.payloadsRead) {
    const rows = await db
      .select({
        id,
        outcome,
        timestamp: sql<number>`floor(extract(epoch from ${receivedAt}))::float8`,
        receivedAt: sql<string>`to_char(${receivedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
        payload: sql<string | null>`${payload}::text`,
        body,
      })
      .from(journal)
      .leftJoin(eventPayloads, eq(eventPayloads.id, id))
      .where(isAmong(id, ids.slice(from, from + batches.payloadsRead)));
    for (const { payload, body, outcome, ...event } of rows) {
      const text = body?.toString('utf8') ?? payload ?? undefined;
      const delivered = text === undefined ? undefined : { ...event, body: text };
      kept.push({ id: event.id, outcome, delivered });
    }
  }
  return kept;
}
