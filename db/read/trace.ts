import { and, asc, desc, eq, isNull, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { uuid } from '../../contract/ids.ts';
import { operationOf, type TracedKind } from '../../contract/names.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { operationsAbout } from '../operations.ts';
import { deletes, rejectedRecords, runs } from '../schema/metersync.ts';
import { connections, documents, meters } from '../schema/utility.ts';
import { readChanges } from './changes.ts';
import { eventsOfRecord } from './events.ts';
import { readSubject } from './subject.ts';

/** The history of one record: where it came from, and what happened to it. */
export type Trace = Awaited<ReturnType<typeof traceRecord>>;

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

/** Reads a record's history from journal, runs and row; empty for an id of another kind. */
export async function traceRecord(db: Executor, kind: TracedKind, givenId: string) {
  const { resources } = tables[kind];
  // Postgres prints UUIDs in lower case; a meter's id is any text.
  const id = kind === 'meter' ? givenId : givenId.toLowerCase();
  const [subject, record, events] = await Promise.all([
    readSubject(db, kind, id),
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
    /** What the record is, and its row; null if the warehouse has no row. */
    subject,
    record,
    events,
    /** Its changes, oldest first. */
    changes,
    /** The latest runs that read its listing, newest first. */
    runs: readBy,
    /** Its refusals by Postgres. */
    rejected,
    /** Notes of runs that found it absent, or listed as deleted. */
    deletes: gone,
    /** What somebody did to it, its events or its runs, oldest first. */
    operations,
  };
}

async function rejectionsOf(db: Executor, id: string, resources: readonly string[]) {
  const { resource, error, rejectedAt, recordId } = rejectedRecords;
  return await db
    .select({ resource, error, rejectedAt })
    .from(rejectedRecords)
    .where(and(isAmong(resource, resources), eq(recordId, id)))
    .orderBy(asc(rejectedAt));
}

async function deletesOf(db: Executor, id: string, resources: readonly string[]) {
  const { runId, reason, state, absentSince, notedAt, decidedAt } = deletes;
  return await db
    .select({ runId, reason, state, absentSince, notedAt, decidedAt })
    .from(deletes)
    .where(and(isAmong(deletes.resource, resources), eq(deletes.recordId, id)))
    .orderBy(asc(notedAt));
}

/** Reads a row's versions: `updated` of the newest reported state, and `rawUpdated` of `raw`. */
async function readRecord(db: Executor, kind: TracedKind, id: string) {
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

/**
 * Lists the latest runs that read listings of a company. `workflowId` is the workflow of the run,
 * also if it started a workflow of its own for a large company.
 */
async function runsOf(db: Executor, companyId: string | null, resources: readonly string[]) {
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
    .where(and(eq(runs.companyId, companyId), isAmong(resource, resources)))
    .orderBy(desc(startedAt))
    .limit(runsMax);
}
