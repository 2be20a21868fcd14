import type { Pool } from 'pg';
import type { Parts } from '../parts.ts';
import { toText } from '../time.ts';

type Counts = Readonly<
  Record<'companies' | 'sites' | 'connections' | 'meters' | 'usageData' | 'intervals', number>
> & {
  /** Documents that are not deleted. */
  readonly documents: number;
  readonly deletedDocuments: number;
};

/** Makes the function for `GET /sandbox/status`. Callers that wait for quiet ask often, so records are rarely counted. */
export function createStatus({ stores: { pool }, clock, dispatcher: { busy }, cache }: Parts) {
  let known: { readonly revision: number; readonly counts: Counts } | undefined;

  const countsNow = async (): Promise<Counts> => {
    const revision = cache.asOf();
    if (known?.revision !== revision) known = { revision, counts: await countRecords(pool) };
    return known.counts;
  };

  return async () => {
    const before = busy();
    const counts = await countsNow();
    const { byType, byState, duplicates } = await readTraffic(pool);
    const state = (name: (typeof deliveryStates)[number]) => byState[name] ?? 0;
    const open = state('waiting') + state('in_flight');
    return {
      now: toText(clock.now()),
      ...counts,
      events: { total: Object.values(byType).reduce((sum, n) => sum + n, 0), byType },
      deliveries: {
        waiting: state('waiting'),
        inFlight: state('in_flight'),
        delivered: state('delivered'),
        failed: state('failed'),
        cancelled: state('cancelled'),
        dropped: state('dropped'),
        duplicates,
      },
      /** Whether nothing waits or is in flight, so that receivers have got everything that was to be sent. */
      quiet: open === 0 && before === 0 && busy() === 0,
    };
  };
}

const count = (table: string, where = 'true') =>
  `(select count(*) from sandbox.${table} where ${where})::float8`;

async function countRecords(pool: Pool): Promise<Counts> {
  const { rows } = await pool.query<Counts>(`
    select ${count('companies')} as companies, ${count('sites')} as sites,
      ${count('connections')} as connections, ${count('meters')} as meters,
      ${count('documents', 'deleted_at is null')} as documents,
      ${count('documents', 'deleted_at is not null')} as "deletedDocuments",
      ${count('usage_data')} as "usageData", ${count('intervals')} as intervals`);
  return only(rows);
}

type Traffic = Record<'byType' | 'byState', Record<string, number>> & { readonly duplicates: number };

async function readTraffic(pool: Pool): Promise<Traffic> {
  const { rows } = await pool.query<Traffic>(`
    with types as (select type, count(*) as n from sandbox.events group by type),
      states as (
        select state, count(*) as n, sum(duplicates) as duplicates
        from sandbox.deliveries
        group by state)
    select (select coalesce(json_object_agg(type, n), '{}') from types) as "byType",
      (select coalesce(json_object_agg(state, n), '{}') from states) as "byState",
      (select coalesce(sum(duplicates), 0)::float8 from states) as duplicates`);
  return only(rows);
}

function only<T>([row]: readonly T[]): T {
  if (row === undefined) throw new Error('a select without from has one row');
  return row;
}

/** Events in the order in which they were written, after event number `after`. */
export async function readEvents(pool: Pool, after: number, limit: number): Promise<object[]> {
  const { rows } = await pool.query(
    `select seq::float8 as seq, id, type, payload::json as payload,
        to_char(created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created
      from sandbox.events
      where seq > $1
      order by seq
      limit $2`,
    [after, limit],
  );
  return rows;
}

export const deliveryStates = [
  'waiting',
  'in_flight',
  'delivered',
  'failed',
  'cancelled',
  'dropped',
] as const;

/** Deliveries in their order. An empty list of states means any state. */
export async function readDeliveries(
  pool: Pool,
  asked: {
    readonly states: readonly string[];
    readonly endpointId: string | undefined;
    readonly after: number;
    readonly limit: number;
  },
): Promise<object[]> {
  const { rows } = await pool.query(
    `select d.id::float8 as id, e.id as "eventId", e.type, d.endpoint_id as "endpointId", d.state,
        d.attempts, d.duplicates, to_char(d.due_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "dueAt"
      from sandbox.deliveries d
      join sandbox.events e on e.seq = d.event_seq
      where d.id > $1
        and ($3::text[] = '{}' or d.state = any ($3))
        and ($4::text is null or d.endpoint_id = $4)
      order by d.id
      limit $2`,
    [asked.after, asked.limit, asked.states, asked.endpointId ?? null],
  );
  return rows;
}

/** The attempts of one delivery, in their order. `duplicate` is a second copy that a disturbance sent. */
export async function readAttempts(pool: Pool, deliveryId: string): Promise<object[]> {
  const { rows } = await pool.query(
    `select number, to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as at, status, duration_ms as "durationMs",
        request_headers::json as "requestHeaders", response_headers::json as "responseHeaders",
        response_body as "responseBody", error, duplicate
      from sandbox.attempts
      where delivery_id = $1
      order by at, number`,
    [deliveryId],
  );
  return rows;
}
