import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  text,
  unique,
  uuid,
} from 'drizzle-orm/pg-core';
import { runStates } from '../../contract/names.ts';
import { now, time } from './columns.ts';

/** The pipeline's own state. */
export const metersync = pgSchema('metersync');

export const outcomes = ['pending', 'applied', 'superseded', 'ignored', 'dead'] as const;

const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

/** The journal: where idempotence lives, and the queue of what is still to be read again. */
export const events = metersync.table(
  'events',
  {
    id: text('id').primaryKey(),
    type: text('type').notNull(),
    kind: text('kind').notNull(),
    recordId: text('record_id'),
    companyId: uuid('company_id'),
    occurredAt: time('occurred_at'),
    rangeStart: time('range_start'),
    rangeEnd: time('range_end'),
    receivedAt: time('received_at').notNull(),
    recordedAt: time('recorded_at').notNull().default(sql`clock_timestamp()`),
    payload: jsonb('payload'),
    body: bytea('body'),
    outcome: text('outcome', { enum: outcomes }).notNull(),
    appliedAt: time('applied_at'),
    error: text('error'),
    attempts: integer('attempts').notNull().default(0),
    nextAttemptAt: time('next_attempt_at'),
  },
  (t) => [
    index('events_record').on(t.recordId, t.recordedAt),
    index('events_pending').on(t.kind, t.companyId, t.recordId).where(sql`outcome = 'pending'`),
    index('events_unhappy').on(t.outcome, t.recordedAt).where(sql`outcome in ('dead', 'ignored')`),
    check('events_outcome', sql`outcome in ('pending', 'applied', 'superseded', 'ignored', 'dead')`),
    check('events_ranges_have_a_length', sql`range_end >= range_start`),
    check('events_dead_say_why', sql`outcome <> 'dead' or error is not null`),
    check('events_keep_their_bytes', sql`payload is not null or body is not null`),
  ],
);

/** Whether the catch-up workflow of a kind is awake; the row is locked by whoever decides. */
export const catchUps = metersync.table('catch_ups', {
  kind: text('kind').primaryKey(),
  awake: boolean('awake').notNull().default(false),
});

/** One row for a run (company and resource null), one for each company and resource in it. */
export const runs = metersync.table(
  'runs',
  {
    runId: uuid('run_id').notNull(),
    companyId: uuid('company_id'),
    resource: text('resource'),
    state: text('state', { enum: runStates }).notNull(),
    startedAt: time('started_at').notNull().default(now),
    finishedAt: time('finished_at'),
    pages: integer('pages').notNull().default(0),
    passes: integer('passes').notNull().default(0),
    totalSaid: bigint('total_said', { mode: 'number' }),
    distinctIds: bigint('distinct_ids', { mode: 'number' }),
    rowsInserted: bigint('rows_inserted', { mode: 'number' }).notNull().default(0),
    rowsChanged: bigint('rows_changed', { mode: 'number' }).notNull().default(0),
    rowsUnchanged: bigint('rows_unchanged', { mode: 'number' }).notNull().default(0),
    rowsTombstoned: bigint('rows_tombstoned', { mode: 'number' }).notNull().default(0),
    rowsRejected: bigint('rows_rejected', { mode: 'number' }).notNull().default(0),
    error: text('error'),
  },
  (t) => [
    unique('runs_key').on(t.runId, t.companyId, t.resource).nullsNotDistinct(),
    index('runs_company').on(t.companyId, t.resource, t.finishedAt),
    check('runs_state', sql`state in ('running', 'complete', 'partial', 'suspect', 'failed')`),
  ],
);

/** The manifest of a pass while it runs: which ids each page held. */
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
