import { sql } from 'drizzle-orm';
import type { DeliveredEvent, Replay } from '../../contract/delivery.ts';
import { batches } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array, type RowOf } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { type events, journal } from '../schema/metersync.ts';
import { amongThem, type EventFilter, event, matching } from './event-filter.ts';

/** A kept event, ready to be recorded again; `event` is undefined if its payload was dropped. */
export interface KeptEvent {
  readonly id: string;
  readonly outcome: EventOutcome;
  readonly event: DeliveredEvent | undefined;
}

/** The last event of a page of kept events. */
export interface KeptCursor {
  readonly receivedAt: string;
  readonly id: string;
}

/** Reads the next page of matching kept events, oldest first, with their payloads. */
export async function keptEvents(
  db: Executor,
  filter: EventFilter,
  replay: Replay,
  page: { limit: number; after: KeptCursor | undefined },
): Promise<{ events: KeptEvent[]; next: KeptCursor | undefined }> {
  const rows = await readKept(db, filter, replay, page);
  const last = rows.at(-1);
  const isFull = rows.length === page.limit && last !== undefined;
  const signed = await readSigned(
    db,
    rows.flatMap(({ id, dropped }) => (dropped ? [] : [id])),
  );
  return {
    events: rows.map(({ id, outcome, seconds, iso }) => {
      const body = signed.get(id);
      const delivered =
        body === undefined ? undefined : { id, timestamp: seconds, receivedAt: iso, body };
      return { id, outcome, event: delivered };
    }),
    next: isFull ? { receivedAt: last.received_at, id: last.id } : undefined,
  };
}

type KeptRow = RowOf<typeof events.id | typeof events.outcome | typeof events.receivedAt> & {
  readonly seconds: number;
  readonly iso: string;
  readonly dropped: boolean;
};

async function readKept(
  db: Executor,
  filter: EventFilter,
  replay: Replay,
  { limit, after }: { limit: number; after: KeptCursor | undefined },
): Promise<KeptRow[]> {
  const later =
    after === undefined
      ? sql`true`
      : sql`(${event.receivedAt}, ${event.id}) > (${after.receivedAt}::timestamptz, ${after.id})`;
  // Requested ids are each answered, also those that cannot be replayed.
  const chosen =
    replay === 'all' || filter.ids !== undefined ? sql`true` : sql`${event.outcome} <> 'applied'`;
  const result = await db.execute<KeptRow>(sql`
    select
      ${event.id},
      ${event.outcome},
      ${event.receivedAt},
      floor(extract(epoch from ${event.receivedAt}))::float8 as seconds,
      to_char(${event.receivedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as iso,
      ${event.payload} is null and ${event.body} is null as dropped
    from ${amongThem(filter)}
    where ${matching(filter)}
      and ${chosen}
      and ${later}
    order by ${event.receivedAt}, ${event.id}
    limit ${limit}`);
  return result.rows;
}

/** Reads the payloads of events, by their ids. */
async function readSigned(
  db: Executor,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const signed = new Map<string, string>();
  for (let from = 0; from < ids.length; from += batches.payloadsRead) {
    const part = ids.slice(from, from + batches.payloadsRead);
    for (const { id, payload, body } of await readBytes(db, part)) {
      const text = payload ?? body?.toString('utf8');
      if (text !== undefined) signed.set(id, text);
    }
  }
  return signed;
}

type Bytes = RowOf<typeof journal.id | typeof journal.body> & { readonly payload: string | null };

async function readBytes(db: Executor, ids: readonly string[]): Promise<Bytes[]> {
  const result = await db.execute<Bytes>(sql`
    select
      ${journal.id},
      ${journal.payload}::text as payload,
      ${journal.body}
    from ${journal}
    where ${journal.id} = any(${array(ids, 'text')})`);
  return result.rows;
}
