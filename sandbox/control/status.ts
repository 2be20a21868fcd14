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
  /** Whether nothing waits or is in flight, so that receivers have got everything that was to be sent. */
  readonly quiet: boolean;
}

type Counts = Omit<Status, 'now' | 'quiet' | 'events' | 'deliveries'>;

interface TrafficRow {
  readonly byType: Record<string, number> | null;
  readonly byState: Record<string, number> | null;
  readonly duplicates: number;
}

export interface StatusDependencies {
  readonly pool: Pool;
  /** The service's time as a timestamp. */
  readonly now: () => string;
  /** Number of attempts under way in the process that the database does not show yet. */
  readonly busy: () => number;
  /** Changes with each change of records. Counts are read again only when it has changed. */
  readonly revision: () => number;
}

/** `GET /sandbox/status` is requested often by callers that wait for quiet: it rarely counts records. */
export function createStatus({ pool, now, busy, revision }: StatusDependencies): () => Promise<Status> {
  let known: { readonly revision: number; readonly counts: Counts } | undefined;

  const countsNow = async (): Promise<Counts> => {
    const asOf = revision();
    if (known?.revision !== asOf) known = { revision: asOf, counts: await countRecords(pool) };
    return known.counts;
  };

  return async () => {
    const before = busy();
    const counts = await countsNow();
    const { byType, byState, duplicates } = await readTraffic(pool);
    const state = (name: string) => byState?.[name] ?? 0;
    const total = Object.values(byType ?? {}).reduce((sum, n) => sum + n, 0);
    const open = state('waiting') + state('in_flight');
    return {
      now: now(),
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
  };
}

const count = (table: string, where = 'true') =>
  `(select count(*) from sandbox.${table} where ${where})::float8`;

async function countRecords(pool: Pool): Promise<Counts> {
  const { rows } = await pool.query<Counts>(`select ${count('companies')} as companies,
    ${count('sites')} as sites, ${count('connections')} as connections, ${count('meters')} as meters,
    ${count('documents', 'deleted_at is null')} as documents,
    ${count('documents', 'deleted_at is not null')} as "deletedDocuments",
    ${count('usage_data')} as "usageData", ${count('intervals')} as intervals`);
  const [counts] = rows;
  if (counts === undefined) throw new Error('no counts');
  return counts;
}

async function readTraffic(pool: Pool): Promise<TrafficRow> {
  const { rows } = await pool.query<TrafficRow>(`select
    (select json_object_agg(type, n) from (select type, count(*) as n from sandbox.events group by 1) t) as "byType",
    (select json_object_agg(state, n) from (select state, count(*) as n from sandbox.deliveries group by 1) t) as "byState",
    (select coalesce(sum(duplicates), 0) from sandbox.deliveries)::float8 as duplicates`);
  const [traffic] = rows;
  if (traffic === undefined) throw new Error('no traffic');
  return traffic;
}
