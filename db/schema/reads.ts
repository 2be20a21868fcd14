import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  index,
  integer,
  jsonb,
  numeric,
  primaryKey,
  text,
  unique,
  uuid,
} from 'drizzle-orm/pg-core';
import { runKinds, runStates } from '../../contract/names.ts';
import { bytea, now, time } from './columns.ts';
import { metersync } from './metersync.ts';

const tstzrange = customType<{ data: string }>({ dataType: () => 'tstzrange' });
const tstzmultirange = customType<{ data: string }>({ dataType: () => 'tstzmultirange' });

/** Stands for no company in columns that need one. It comes before all companies. */
export const noCompany = '00000000-0000-0000-0000-000000000000';

/**
 * One row per run (company and resource null), and one for each company and resource in it. `claimedTo`: the
 * last company that a lane of the run has begun.
 */
export const runs = metersync.table(
  'runs',
  {
    runId: uuid('run_id').notNull(),
    companyId: uuid('company_id'),
    resource: text('resource'),
    kind: text('kind', { enum: runKinds }).notNull().default('full'),
    workflowId: text('workflow_id'),
    claimedTo: uuid('claimed_to').notNull().default(noCompany),
    state: text('state', { enum: runStates }).notNull(),
    startedAt: time('started_at').notNull().default(now),
    progressAt: time('progress_at'),
    finishedAt: time('finished_at'),
    pages: integer('pages').notNull().default(0),
    passes: integer('passes').notNull().default(0),
    reportedTotal: bigint('total_said', { mode: 'number' }),
    distinctIds: bigint('distinct_ids', { mode: 'number' }),
    rowsInserted: bigint('rows_inserted', { mode: 'number' }).notNull().default(0),
    rowsChanged: bigint('rows_changed', { mode: 'number' }).notNull().default(0),
    rowsUnchanged: bigint('rows_unchanged', { mode: 'number' }).notNull().default(0),
    rowsTombstoned: bigint('rows_tombstoned', { mode: 'number' }).notNull().default(0),
    rowsRejected: bigint('rows_rejected', { mode: 'number' }).notNull().default(0),
    valuesUnreadable: bigint('values_unreadable', { mode: 'number' }).notNull().default(0),
    rowsMissed: bigint('rows_missed', { mode: 'number' }).notNull().default(0),
    drift: integer('drift').notNull().default(0),
    requests: integer('requests').notNull().default(0),
    error: text('error'),
    errorCode: text('error_code'),
  },
  (t) => [
    unique('runs_key').on(t.runId, t.companyId, t.resource).nullsNotDistinct(),
    index('runs_company').on(t.companyId, t.resource, t.finishedAt),
    index('runs_under_way').on(t.runId).where(sql`finished_at is null`),
    // The triggers of the history look up the running run of a company here for each changed row.
    index('runs_running').on(t.companyId, t.startedAt).where(sql`state = 'running'`),
    index('runs_failed')
      .on(t.finishedAt)
      .where(sql`resource is not null and state in ('failed', 'partial')`),
    index('runs_missed').on(t.finishedAt).where(sql`company_id is not null and rows_missed > 0`),
    check('runs_kind', sql`kind in ('full', 'reconcile')`),
    check('runs_state', sql`state in ('running', 'complete', 'partial', 'suspect', 'failed')`),
  ],
);

/** Companies that were chosen for a run; a run of all companies has no rows. */
export const runCompanies = metersync.table(
  'run_companies',
  {
    runId: uuid('run_id').notNull(),
    companyId: uuid('company_id').notNull(),
    refused: boolean('refused').notNull().default(false),
  },
  (t) => [primaryKey({ columns: [t.runId, t.companyId] })],
);

/** The companies that the lanes of a run under way have taken and not read to the end. */
export const runLanes = metersync.table(
  'run_lanes',
  {
    runId: uuid('run_id').notNull(),
    companyId: uuid('company_id').notNull(),
    lane: integer('lane').notNull(),
  },
  (t) => [primaryKey({ columns: [t.runId, t.companyId] })],
);

/** The manifest of a pass while it runs: the ids on each page. */
export const pages = metersync.table(
  'pages',
  {
    runId: uuid('run_id').notNull(),
    companyId: uuid('company_id').notNull(),
    resource: text('resource').notNull(),
    pass: integer('pass').notNull(),
    asked: integer('asked').notNull(),
    currentPage: integer('current_page').notNull(),
    total: bigint('total', { mode: 'number' }),
    hasNext: boolean('has_next').notNull(),
    ids: text('ids').array().notNull(),
    readAt: time('read_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.runId, t.companyId, t.resource, t.pass, t.asked] })],
);

/**
 * What a company's listing shows of a record if the row shows what another company's listing does. It
 * becomes the row when that listing lacks the record: see records/listers.ts. `raw` is NULL in entries
 * of 0.2, which only say that the company lists the record.
 */
export const alsoListed = metersync.table(
  'also_listed',
  {
    resource: text('resource').notNull(),
    recordId: text('record_id').notNull(),
    companyId: uuid('company_id').notNull(),
    raw: jsonb('raw'),
    digest: bytea('digest'),
    apiVersion: text('api_version'),
    /** When the read began, by the warehouse's clock. */
    readAt: time('read_at'),
  },
  (t) => [
    primaryKey({ columns: [t.resource, t.recordId, t.companyId] }),
    index('also_listed_company').on(t.companyId, t.resource),
  ],
);

/**
 * The fence of each listing: when its newest proved walk began. Unchanged records of that walk left
 * no date in their rows, so pages and absences of an earlier walk are dropped. See records/fence.ts.
 */
export const listings = metersync.table(
  'listings',
  {
    companyId: uuid('company_id').notNull(),
    resource: text('resource').notNull(),
    provedBegan: time('proved_began').notNull(),
  },
  (t) => [primaryKey({ columns: [t.companyId, t.resource] })],
);

/** Records of the API that Postgres refused, with their text. */
export const rejectedRecords = metersync.table(
  'rejected_records',
  {
    resource: text('resource').notNull(),
    recordId: text('record_id').notNull(),
    companyId: uuid('company_id'),
    error: text('error').notNull(),
    record: text('record').notNull(),
    rejectedAt: time('rejected_at').notNull().default(now),
  },
  (t) => [primaryKey({ columns: [t.resource, t.recordId] })],
);

export const deleteStates = ['quarantined', 'applied', 'rejected', 'undone'] as const;
export const deleteReasons = ['absent', 'listed'] as const;

/** Rows that a run found gone: tombstoned, or quarantined until an operator decides. */
export const deletes = metersync.table(
  'deletes',
  {
    runId: uuid('run_id').notNull(),
    companyId: uuid('company_id'),
    resource: text('resource').notNull(),
    recordId: text('record_id').notNull(),
    state: text('state', { enum: deleteStates }).notNull(),
    reason: text('reason', { enum: deleteReasons }).notNull().default('absent'),
    updated: time('updated'),
    absentSince: time('absent_since').notNull(),
    notedAt: time('noted_at').notNull().default(now),
    decidedAt: time('decided_at'),
    /** Only in notes about readings: meter, unit, span of their starts, and their number. */
    meterId: text('meter_id'),
    usageUnits: text('usage_units'),
    startsFrom: time('starts_from'),
    startsBefore: time('starts_before'),
    readings: bigint('readings', { mode: 'number' }),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.resource, t.recordId] }),
    index('deletes_undecided').on(t.companyId, t.resource).where(sql`state = 'quarantined'`),
    // Statements about one record write these states in another way, or they would walk this index:
    // with 1,300 records of other companies kept, the end of a listing took 50 times as many blocks.
    index('deletes_kept')
      .on(t.companyId, t.resource)
      .where(sql`state not in ('quarantined', 'applied')`),
    index('deletes_record').on(t.resource, t.recordId),
    index('deletes_meter').on(t.meterId).where(sql`meter_id is not null`),
    check('deletes_state', sql`state in ('quarantined', 'applied', 'rejected', 'undone')`),
    check('deletes_reason', sql`reason in ('absent', 'listed')`),
  ],
);

/** Readings that a run or a decision removed, so that the removal can be undone. */
export const removedReadings = metersync.table(
  'removed_readings',
  {
    runId: uuid('run_id').notNull(),
    meterId: text('meter_id').notNull(),
    startAt: time('start_at').notNull(),
    granularitySeconds: integer('granularity_seconds').notNull(),
    usageUnits: text('usage_units').notNull(),
    ordinal: integer('ordinal').notNull(),
    usage: numeric('usage'),
    quality: text('quality'),
    updated: time('updated'),
    syncedAt: time('synced_at').notNull(),
    unreadable: jsonb('unreadable'),
  },
  (t) => [index('removed_readings_run').on(t.runId)],
);

/** The ranges of each meter's readings that were fetched; events have the announced ranges. */
export const intervalFetches = metersync.table('interval_fetches', {
  meterId: text('meter_id').primaryKey(),
  fetched: tstzmultirange('fetched').notNull(),
  updatedAt: time('updated_at').notNull().default(now),
});

/**
 * The ranges of each meter that were read within a day, so that a read that began earlier and is written later does
 * not bring back what a later one did not show.
 */
export const intervalReads = metersync.table(
  'interval_reads',
  {
    meterId: text('meter_id').notNull(),
    span: tstzrange('span').notNull(),
    began: time('began').notNull(),
  },
  (t) => [primaryKey({ columns: [t.meterId, t.span] })],
);
