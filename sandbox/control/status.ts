import type { Pool } from 'pg';

export interface Status {
  readonly now: string;
  readonly companies: number;
  readonly sites: number;
  readonly connections: number;
  readonly meters: number;
  /** Documents that are not deleted. */
  readonly documents: number;
  readonly deletedDocuments: number;
  readonly usageData: number;
  readonly intervals: number;
  readonly events: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  readonly deliveries: {
    readonly waiting: number;
    readonly inFlight: number;
    readonly delivered: number;
    readonly failed: number;
    readonly cancelled: number;
    readonly dropped: number;
    readonly duplicates: number;
  };
  /** Nothing waits, nothing is in flight: the receiver was given all that it will be given. */
  readonly quiet: boolean;
}

interface StatusRow extends Omit<Status, 'now' | 'quiet' | 'events' | 'deliveries'> {
  readonly byType: Record<string, number> | null;
  readonly byState: Record<string, number> | null;
  readonly duplicates: number;
}

const count = (table: string, where = 'true') =>
  `(select count(*) from sandbox.${table} where ${where})::float8`;

/** `GET /sandbox/status`. `busy` counts what is under way in the process and not in the database yet. */
export async function readStatus(pool: Pool, now: string, busy: () => number): Promise<Status> {
  const before = busy();
  const { rows } =
    await pool.query<StatusRow>(`select ${count('companies')} as companies, ${count('sites')} as sites,
    ${count('connections')} as connections, ${count('meters')} as meters,
    ${count('documents', 'deleted_at is null')} as documents,
    ${count('documents', 'deleted_at is not null')} as "deletedDocuments",
    ${count('usage_data')} as "usageData", ${count('intervals')} as intervals,
    (select json_object_agg(type, n) from (select type, count(*) as n from sandbox.events group by 1) t) as "byType",
    (select json_object_agg(state, n) from (select state, count(*) as n from sandbox.deliveries group by 1) t) as "byState",
    (select coalesce(sum(duplicates), 0) from sandbox.deliveries)::float8 as duplicates`);
  const [row] = rows;
  if (row === undefined) throw new Error('no status');
  const { byType, byState, duplicates, ...counts } = row;
  const state = (name: string) => byState?.[name] ?? 0;
  const total = Object.values(byType ?? {}).reduce((sum, n) => sum + n, 0);
  const open = state('waiting') + state('in_flight');
  return {
    now,
    ...counts,
    events: { total, byType: byType ?? {} },
    deliveries: {
      waiting: state('waiting'),
      inFlight: state('in_flight'),
      delivered: state('delivered'),
      failed: state('failed'),
      cancelled: state('cancelled'),
      dropped: state('dropped'),
      duplicates,
    },
    quiet: open === 0 && before === 0 && busy() === 0,
  };
}
