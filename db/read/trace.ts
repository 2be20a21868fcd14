import { type SQL, sql } from 'drizzle-orm';
import { type RunKind, type RunState, type TracedKind, workflowIds } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { eventsOfRecord, type JournalledEvent } from './events.ts';

/** Everything that metersync knows of one record: where it came from and what became of it. */
export interface Trace {
  readonly kind: TracedKind;
  readonly id: string;
  /** Its row; null when the warehouse has none. */
  readonly record: TracedRecord | null;
  readonly events: readonly JournalledEvent[];
  /** The latest runs that read the listing in which it stands, newest first. */
  readonly runs: readonly TracedRun[];
  /** What Postgres refused of it. */
  readonly rejected: readonly {
    readonly resource: string;
    readonly error: string;
    readonly rejectedAt: string;
  }[];
  /** Runs that found it absent, or listed as deleted. */
  readonly deletes: readonly {
    readonly runId: string;
    readonly reason: string;
    readonly state: string;
    readonly absentSince: string;
    readonly notedAt: string;
    readonly decidedAt: string | null;
  }[];
}

/**
 * The versions and times of a row. `updated` is the newest state heard of, `rawUpdated` that of the
 * state in raw.
 */
export interface TracedRecord {
  readonly companyId: string | null;
  readonly created: string | null;
  readonly updated: string | null;
  readonly rawUpdated: string | null;
  readonly apiVersion: string | null;
  readonly firstSyncedAt: string;
  readonly syncedAt: string | null;
  readonly deletedAt: string | null;
  readonly deletedReason: string | null;
}

export interface TracedRun {
  readonly runId: string;
  readonly kind: RunKind;
  readonly resource: string;
  readonly state: RunState;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly error: string | null;
  readonly errorCode: string | null;
  /** The workflow of the run; a large company has one of its own, which that one started. */
  readonly workflowIds: readonly string[];
}

const tables: Readonly<
  Record<TracedKind, { readonly table: string; readonly resources: readonly string[] }>
> = {
  document: { table: 'documents', resources: ['documents'] },
  connection: { table: 'connections', resources: ['connections'] },
  meter: { table: 'meters', resources: ['meters', 'intervals'] },
};

const runsMax = 20;

/**
 * Reads the story of a record from the journal, the runs and its row. An id of another kind gives
 * an empty one.
 */
export async function traceRecord(db: Executor, kind: TracedKind, givenId: string): Promise<Trace> {
  const { resources } = tables[kind];
  // Postgres prints UUIDs in lower case; a meter's id is any text.
  const id = kind === 'meter' ? givenId : givenId.toLowerCase();
  const [record, events] = await Promise.all([
    readRecord(db, kind, id),
    eventsOfRecord(db, kind === 'meter' ? 'interval' : kind, id),
  ]);
  const companyId =
    record?.companyId ?? events.find((event) => event.companyId !== null)?.companyId ?? null;
  const [runs, rejected, deletes] = await Promise.all([
    runsOf(db, companyId, resources),
    db.execute<Trace['rejected'][number] & Record<string, unknown>>(sql`
      select resource, error, rejected_at as "rejectedAt" from metersync.rejected_records
      where resource = any(${array(resources, 'text')}) and record_id = ${id} order by rejected_at`),
    db.execute<Trace['deletes'][number] & Record<string, unknown>>(sql`
      select run_id as "runId", reason, state, absent_since as "absentSince", noted_at as "notedAt", decided_at as "decidedAt"
      from metersync.deletes
      where resource = any(${array(resources, 'text')}) and record_id = ${id} order by noted_at`),
  ]);
  return { kind, id, record, events, runs, rejected: rejected.rows, deletes: deletes.rows };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function readRecord(
  db: Executor,
  kind: TracedKind,
  id: string,
): Promise<TracedRecord | null> {
  if (kind !== 'meter' && !uuid.test(id)) return null;
  const times: SQL =
    kind === 'meter'
      ? sql`null as created, null as updated, null as "rawUpdated"`
      : sql`created, updated, raw_updated as "rawUpdated"`;
  const result = await db.execute<TracedRecord & Record<string, unknown>>(sql`
    select company_id as "companyId", ${times}, api_version as "apiVersion", first_synced_at as "firstSyncedAt",
      synced_at as "syncedAt", deleted_at as "deletedAt", deleted_reason as "deletedReason"
    from ${sql.raw(`utility.${tables[kind].table}`)} where id = ${id}`);
  return result.rows[0] ?? null;
}

async function runsOf(
  db: Executor,
  companyId: string | null,
  resources: readonly string[],
): Promise<TracedRun[]> {
  if (companyId === null) return [];
  const result = await db.execute<Omit<TracedRun, 'workflowIds'> & Record<string, unknown>>(sql`
    select run_id as "runId", kind, resource, state, started_at as "startedAt", finished_at as "finishedAt", error,
      error_code as "errorCode"
    from metersync.runs where company_id = ${companyId}::uuid and resource = any(${array(resources, 'text')})
    order by started_at desc limit ${runsMax}`);
  return result.rows.map((run) => ({ ...run, workflowIds: [workflowIds.backfillAll(run.runId)] }));
}
