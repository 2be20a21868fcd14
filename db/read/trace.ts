import { and, asc, desc, eq, isNull, type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import { uuid } from '../../contract/ids.ts';
import { operationOf, type RunKind, type RunState, type TracedKind } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { type OperationAbout, operationsAbout } from '../operations.ts';
import { deletes, rejectedRecords, runs } from '../schema/metersync.ts';
import { connections, documents, meters } from '../schema/utility.ts';
import { type RecordChange, readChanges } from './changes.ts';
import { eventsOfRecord, type JournalledEvent } from './events.ts';

/** The history of one record: where it came from, and what happened to it. */
export interface Trace {
  readonly kind: TracedKind;
  readonly id: string;
  /** Its row; null if the warehouse has none. */
  readonly record: TracedRecord | null;
  readonly events: readonly JournalledEvent[];
  /** Its changes, oldest first. */
  readonly changes: readonly RecordChange[];
  /** The latest runs that read its listing, newest first. */
  readonly runs: readonly TracedRun[];
  /** Its refusals by Postgres. */
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
  /** What somebody did to it, its events or its runs, oldest first. */
  readonly operations: readonly OperationAbout[];
}

/**
 * The versions and times of a row. `updated` is the newest state reported, `rawUpdated` that of the
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
  /** The workflow of the run; a large company has its own, which that workflow started. */
  readonly workflowId: string | null;
}

/** The service does not say when it created or changed a meter. */
const none = sql<null>`null`;

const timesOf = ({ created, updated, rawUpdated }: typeof documents | typeof connections) => ({
  created,
  updated,
  rawUpdated,
});

const tables = {
  document: { table: documents, times: timesOf(documents), resources: ['documents'] },
  connection: { table: connections, times: timesOf(connections), resources: ['connections'] },
  meter: {
    table: meters,
    times: { created: none, updated: none, rawUpdated: none },
    resources: ['meters', 'intervals'],
  },
} as const;

const runsMax = 20;

/**
 * Reads the history of a record from the journal, the runs and its row. An id of another kind gives
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
  const [readBy, changes, rejected, gone] = await Promise.all([
    runsOf(db, companyId, resources),
    kind === 'meter' || uuid.test(id) ? readChanges(db, kind, id) : [],
    rejectionsOf(db, id, resources),
    deletesOf(db, id, resources),
  ]);
  const names = [
    id,
    ...events.map((event) => event.id),
    ...[...readBy, ...gone].map(({ runId }) => runId),
    ...changes.flatMap(({ by }) => by ?? []),
  ];
  const replays = events.flatMap(({ workflowId }) => operationOf(workflowId ?? '') ?? []);
  const operations = await operationsAbout(db, [...new Set(names)], replays);
  return {
    kind,
    id,
    record,
    events,
    changes,
    runs: readBy,
    rejected,
    deletes: gone,
    operations,
  };
}

/** Whether a resource is one of these. */
const among = (column: PgColumn, resources: readonly string[]): SQL =>
  sql`${column} = any(${array(resources, 'text')})`;

async function rejectionsOf(
  db: Executor,
  id: string,
  resources: readonly string[],
): Promise<Trace['rejected']> {
  const { resource, error, rejectedAt, recordId } = rejectedRecords;
  return await db
    .select({ resource, error, rejectedAt })
    .from(rejectedRecords)
    .where(and(among(resource, resources), eq(recordId, id)))
    .orderBy(asc(rejectedAt));
}

async function deletesOf(
  db: Executor,
  id: string,
  resources: readonly string[],
): Promise<Trace['deletes']> {
  const { runId, reason, state, absentSince, notedAt, decidedAt } = deletes;
  return await db
    .select({ runId, reason, state, absentSince, notedAt, decidedAt })
    .from(deletes)
    .where(and(among(deletes.resource, resources), eq(deletes.recordId, id)))
    .orderBy(asc(notedAt));
}

async function readRecord(
  db: Executor,
  kind: TracedKind,
  id: string,
): Promise<TracedRecord | null> {
  if (kind !== 'meter' && !uuid.test(id)) return null;
  const { table, times } = tables[kind];
  const { companyId, apiVersion, firstSyncedAt, syncedAt, deletedAt, deletedReason } = table;
  const [record] = await db
    .select({
      companyId,
      ...times,
      apiVersion,
      firstSyncedAt,
      syncedAt,
      deletedAt,
      deletedReason,
    })
    .from(table)
    .where(eq(table.id, id));
  return record ?? null;
}

async function runsOf(
  db: Executor,
  companyId: string | null,
  resources: readonly string[],
): Promise<TracedRun[]> {
  if (companyId === null) return [];
  const { runId, kind, resource, state, startedAt, finishedAt, error, errorCode } = runs;
  const run = alias(runs, 'run');
  return await db
    .select({
      runId,
      kind,
      resource: sql<string>`${resource}`,
      state,
      startedAt,
      finishedAt,
      error,
      errorCode,
      workflowId: run.workflowId,
    })
    .from(runs)
    .leftJoin(run, and(eq(run.runId, runId), isNull(run.companyId), isNull(run.resource)))
    .where(and(eq(runs.companyId, companyId), among(resource, resources)))
    .orderBy(desc(startedAt))
    .limit(runsMax);
}
