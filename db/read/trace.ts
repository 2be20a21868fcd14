import { and, asc, desc, eq, isNull, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { operationOf, type TracedKind } from '../../contract/names.ts';
import { uuid } from '../../contract/values.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { operationsAbout } from '../operations.ts';
import { isStateOf, resources } from '../resources.ts';
import { earlierStates } from '../schema/metersync.ts';
import { deletes, rejectedRecords, runs } from '../schema/reads.ts';
import { companies, connections, documents, meters, sites } from '../schema/utility.ts';
import { eventsOfRecord } from './events.ts';

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

const resourceOf = { document: 'documents', connection: 'connections', meter: 'meters' } as const;

/** Maximum number of changes that are returned: the latest changes. */
const changesMax = 50;

/** The compared parts of a state: the fields of the record as JSON, and whether it is deleted. */
const stateOf = sql<Readonly<Record<string, string>> | null>`(
  select jsonb_object_agg(key, value::text)
  from jsonb_each(
    coalesce(raw, '{}') || jsonb_strip_nulls(jsonb_build_object('(deleted)', deleted_reason))
  )
)`;

/**
 * Reads the changes of a record, oldest first: the differences between successive states. The first
 * read is not a change. The cause is an event or a run, or null if it is unknown, for example after
 * a read of a catch-up. Values are JSON as text, null for an absent field.
 */
async function readChanges(db: Executor, kind: TracedKind, id: string) {
  const { table } = resources[resourceOf[kind]];
  const [held] = await db.select({ state: stateOf }).from(table).where(eq(table.id, id));
  const states = await db
    .select({
      at: earlierStates.validTo,
      byKind: earlierStates.endedByKind,
      by: earlierStates.endedBy,
      wasRead: sql<boolean>`raw is not null`,
      state: stateOf,
    })
    .from(earlierStates)
    .where(isStateOf(resourceOf[kind], id))
    .orderBy(desc(earlierStates.validTo))
    .limit(changesMax);
  const changes = states.flatMap(({ at, byKind, by, wasRead, state }, place) => {
    const next = place === 0 ? held : states[place - 1];
    if (next === undefined || !wasRead) return [];
    return [{ at, byKind, by, fields: differing(state ?? {}, next.state ?? {}) }];
  });
  return changes.reverse();
}

const differing = (
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
) =>
  Object.keys({ ...before, ...after })
    .toSorted()
    .filter((field) => before[field] !== after[field])
    .map((field) => ({ field, before: before[field] ?? null, after: after[field] ?? null }));

/** What a record is, for people: values by label, in the order of interest; null if it has no value. */
type Subject = Readonly<Record<string, string | null>>;

const subjects: Readonly<Record<TracedKind, (id: string) => SQL>> = {
  document: (id) => sql`
    select
      b.provider,
      b.invoice_id as invoice,
      b.account_number as account,
      c.name as company,
      s.name as site,
      nullif(concat_ws(' to ', b.start_date, b.end_date), '') as period,
      nullif(concat_ws(' ', cost, case when cost is not null then b.currency end), '') as cost
    from ${documents} d
      cross join lateral analytics.read_bill(d.raw) b
      cross join lateral coalesce(b.current_charges, b.total_charges) as cost
      left join ${companies} c on c.id = d.company_id
      left join ${sites} s on s.id = d.site_id
    where d.id = metersync.uuid_of(${id})`,
  connection: (id) => sql`
    select k.datasource as provider, c.name as company, k.status
    from ${connections} k
      left join ${companies} c on c.id = k.company_id
    where k.id = metersync.uuid_of(${id})`,
  meter: (id) => sql`
    select
      (
        select string_agg(concat_ws(' ', lower(number ->> 'name'), number ->> 'value'), ', ')
        from jsonb_array_elements(metersync.elements(m.raw -> 'identifiers')) number
      ) as numbers,
      m.datasource_type as commodity,
      c.name as company,
      s.name as site
    from ${meters} m
      left join ${companies} c on c.id = m.company_id
      left join ${sites} s on s.id = m.site_id
    where m.id = ${id}`,
};

/** Reads what a record is; null if the warehouse does not have the record. */
async function readSubject(db: Executor, kind: TracedKind, id: string): Promise<Subject | null> {
  const { rows } = await db.execute<Subject>(subjects[kind](id));
  return rows[0] ?? null;
}
