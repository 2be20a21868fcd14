import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  jsonb,
  numeric,
  pgSchema,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import {
  checkKinds,
  eventOutcomes,
  operationActions,
  operationOutcomes,
  operationSources,
  operatorRoles,
} from '../../contract/names.ts';
import { bytea, synced, time } from './columns.ts';

/** The pipeline's own state. */
export const metersync = pgSchema('metersync');

const endedOtherwise = sql.raw(`outcome in ('superseded', 'ignored', 'dead', 'missing')`);
const isPending = sql.raw(`outcome = 'pending'`);
const wasLate = sql.raw(`settled_at - received_at > interval '1 day'`);

/**
 * The journal of events, which makes recording idempotent, with the outcome of each event. It is also
 * the queue of the pending events: each is due at `dueAt`, in the `queue` of the owner whose listing has
 * its record (see db/queue/queue.ts); both are NULL for other events. The partial indexes have different
 * conditions, so that a look-up by the record, by the queue or by the time can use only one of them. With
 * statistics from a time when no event was pending the planner considers all indexes equally good. Bytes are in
 * `eventPayloads`, so that rows are narrow. Events that did not become applied, and events settled
 * more than a day after their receipt (`late`), are found by two computed columns, `aside` and
 * `asideAt`. `lacking` is the number of readings that an event reported and a read did not find.
 */
export const journal = metersync.table(
  'journal',
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
    settledAt: time('settled_at'),
    outcome: text('outcome', { enum: eventOutcomes }).notNull(),
    queue: text('queue'),
    dueAt: time('due_at'),
    error: text('error'),
    errorCode: text('error_code'),
    attempts: integer('attempts').notNull().default(0),
    intervalCount: bigint('interval_count', { mode: 'number' }),
    intervalsFound: bigint('intervals_found', { mode: 'number' }),
    workflowId: text('workflow_id'),
    workflowRunId: text('workflow_run_id'),
    payloadDroppedAt: time('payload_dropped_at'),
    aside: text('aside').generatedAlwaysAs(
      sql`case when ${endedOtherwise} then outcome when ${wasLate} then 'late' end`,
    ),
    asideAt: time('aside_at').generatedAlwaysAs(
      sql`case when ${endedOtherwise} or ${wasLate} then coalesce(settled_at, recorded_at) end`,
    ),
    lacking: bigint('lacking', { mode: 'number' }).generatedAlwaysAs(
      sql`case when intervals_found < interval_count then interval_count - intervals_found end`,
    ),
  },
  (t) => [
    index('journal_record').on(t.recordId, t.recordedAt),
    index('journal_received').on(t.receivedAt, t.id),
    index('journal_company').on(t.companyId, t.receivedAt, t.id).where(sql`company_id is not null`),
    index('journal_aside').on(t.aside, t.asideAt, t.id).where(sql`aside is not null`),
    index('journal_missing').on(t.recordId).where(sql`aside = 'missing'`),
    index('journal_lacking').on(t.recordId).where(sql`lacking is not null`),
    index('journal_with_payload').on(t.receivedAt).where(sql`payload_dropped_at is null`),
    index('journal_pending_record').on(t.recordId, t.kind).where(isPending),
    index('journal_pending_queue').on(t.queue, t.dueAt, t.id).where(sql`queue is not null`),
    index('journal_pending_due').on(t.kind, t.dueAt, t.id).where(sql`due_at is not null`),
    index('journal_pending_failed')
      .on(t.errorCode, t.dueAt, t.id)
      .where(sql`${isPending} and error_code is not null`),
    check(
      'journal_outcome',
      sql`outcome in ('pending', 'applied', 'superseded', 'ignored', 'dead', 'missing')`,
    ),
    check('journal_ranges_have_a_length', sql`range_end >= range_start`),
    check('journal_dead_say_why', sql`outcome <> 'dead' or error is not null`),
    check(
      'journal_pending_are_queued',
      sql`(outcome = 'pending') = (queue is not null) and (queue is null) = (due_at is null)`,
    ),
  ],
);

/**
 * The payload of each event of the journal. If jsonb cannot hold it as it was sent, `body` has its
 * bytes, and the payload has U+FFFD for the characters, or is NULL. A row is written once, unless
 * its event is recorded again, and deleted when it is old enough.
 */
export const eventPayloads = metersync.table(
  'event_payloads',
  {
    id: text('id').primaryKey(),
    payload: jsonb('payload'),
    body: bytea('body'),
  },
  () => [check('event_payloads_keep_bytes', sql`payload is not null or body is not null`)],
);

/**
 * The earlier states of all records, which a trigger writes with the change that ends them. A state
 * has the values of the columns of its record's table; the other columns are NULL. A meter has its
 * id in `meterId`, because it need not be a UUID. The views of schema `history` have the states of
 * one resource each.
 */
export const earlierStates = metersync.table(
  'earlier_states',
  {
    resource: text('resource').notNull(),
    id: uuid('id'),
    companyId: uuid('company_id'),
    siteId: uuid('site_id'),
    documentId: uuid('document_id'),
    revisedDocumentId: uuid('revised_document_id'),
    meterId: text('meter_id'),
    externalId: text('external_id'),
    publicId: text('public_id'),
    name: text('name'),
    datasource: text('datasource'),
    status: text('status'),
    url: text('url'),
    accountId: text('account_id'),
    datasourceType: text('datasource_type'),
    startDate: date('start_date'),
    endDate: date('end_date'),
    usage: numeric('usage'),
    usageUnits: text('usage_units'),
    isEstimated: boolean('is_estimated'),
    exclusion: boolean('exclusion'),
    netMeteringType: text('net_metering_type'),
    billedDemand: numeric('billed_demand'),
    created: time('created'),
    updated: time('updated'),
    rawUpdated: time('raw_updated'),
    usageReadAt: time('usage_read_at'),
    ...synced(),
    validFrom: time('valid_from').notNull(),
    validTo: time('valid_to').notNull(),
    endedByKind: text('ended_by_kind', { enum: ['event', 'run'] }),
    endedBy: text('ended_by'),
  },
  (t) => [
    index('earlier_states_record').on(t.resource, t.id, t.validTo),
    index('earlier_states_meter').on(t.meterId, t.validTo).where(sql`resource = 'meters'`),
    index('earlier_states_company').on(t.companyId).where(sql`resource = 'documents'`),
    check('earlier_states_have_an_id', sql`(id is null) = (resource = 'meters')`),
  ],
);

/** The journal with payloads and why events wait: see analytics/views/metersync.events.sql. */
export const events = metersync
  .view('events', {
    id: text('id').notNull(),
    type: text('type').notNull(),
    kind: text('kind').notNull(),
    outcome: text('outcome', { enum: eventOutcomes }).notNull(),
    recordId: text('record_id'),
    companyId: uuid('company_id'),
    occurredAt: time('occurred_at'),
    rangeStart: time('range_start'),
    rangeEnd: time('range_end'),
    receivedAt: time('received_at').notNull(),
    recordedAt: time('recorded_at').notNull(),
    appliedAt: time('applied_at'),
    settledAt: time('settled_at'),
    payload: jsonb('payload'),
    body: bytea('body'),
    error: text('error'),
    errorCode: text('error_code'),
    attempts: integer('attempts').notNull(),
    nextAttemptAt: time('next_attempt_at'),
    intervalCount: bigint('interval_count', { mode: 'number' }),
    intervalsFound: bigint('intervals_found', { mode: 'number' }),
    workflowId: text('workflow_id'),
    workflowRunId: text('workflow_run_id'),
    payloadDroppedAt: time('payload_dropped_at'),
  })
  .existing();

/**
 * Which requests fail for now: one row for the service, or for the queue of an owner. Until a probe
 * succeeds, no other request of the scope is sent; its events are not touched.
 */
export const gates = metersync.table('gates', {
  scope: text('scope').primaryKey(),
  code: text('code').notNull(),
  message: text('message').notNull(),
  since: time('since').notNull().default(sql`clock_timestamp()`),
  attempts: integer('attempts').notNull(),
  nextProbeAt: time('next_probe_at').notNull(),
});

/**
 * Companies whose data was checked, one row per kind of checks. A row means that since the check
 * nothing has changed that the checks could find. The session that checks a company locks its row.
 */
export const dataChecks = metersync.table(
  'data_checks',
  {
    companyId: uuid('company_id').notNull(),
    runWith: text('run_with', { enum: checkKinds }).notNull(),
    seenUntil: time('seen_until').notNull(),
    today: date('today').notNull(),
    checksOff: text('checks_off').array().notNull(),
  },
  (t) => [primaryKey({ columns: [t.companyId, t.runWith] })],
);

/**
 * Companies whose records changed since their months were computed; NULL stands for all. Writers to
 * this log do not wait. Computing a company's months replaces its rows by one with `isKept`.
 */
export const companyChanges = metersync.table(
  'company_changes',
  {
    companyId: uuid('company_id'),
    changedAt: time('changed_at').notNull().default(sql`clock_timestamp()`),
    isKept: boolean('is_kept').notNull().default(false),
  },
  (t) => [
    index('company_changes_company').on(t.companyId),
    index('company_changes_waiting').on(t.changedAt).where(sql`not is_kept`),
  ],
);

const meterColumns = () => ({
  companyId: uuid('company_id').notNull(),
  siteId: uuid('site_id'),
  meterId: text('meter_id'),
  datasourceType: text('datasource_type'),
});

/** Months of companies, as `metersync.monthly_usage_now` and `monthly_cost_now` computed them. */
export const monthlyUsage = metersync.table(
  'monthly_usage',
  {
    ...meterColumns(),
    month: date('month'),
    units: text('units'),
    billedUsage: numeric('billed_usage'),
    usage: numeric('usage'),
    extrapolatedUsage: numeric('extrapolated_usage'),
    originalUsage: numeric('original_usage'),
    originalUnits: text('original_units'),
    generatedUsage: numeric('generated_usage'),
    peakDemand: numeric('peak_demand'),
    daysInMonth: integer('days_in_month'),
    daysCovered: integer('days_covered'),
    coverage: numeric('coverage'),
    daysOverlapped: integer('days_overlapped'),
    estimatedDays: integer('estimated_days'),
    isComplete: boolean('is_complete'),
    bills: integer('bills'),
    billIds: uuid('bill_ids').array(),
    peakDemandUnits: text('peak_demand_units'),
    unmeteredSource: text('unmetered_source'),
  },
  (t) => [index('monthly_usage_company').on(t.companyId)],
);

export const monthlyCost = metersync.table(
  'monthly_cost',
  {
    ...meterColumns(),
    currency: text('currency'),
    month: date('month'),
    cost: numeric('cost'),
    daysInMonth: integer('days_in_month'),
    daysCovered: integer('days_covered'),
    coverage: numeric('coverage'),
    daysOverlapped: integer('days_overlapped'),
    bills: integer('bills'),
    billIds: uuid('bill_ids').array(),
  },
  (t) => [index('monthly_cost_company').on(t.companyId)],
);

/**
 * A log of the actions of people, including actions that were refused. A row is written before the
 * action and finished once. A trigger refuses every other change.
 */
export const operations = metersync.table(
  'operations',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    at: time('at').notNull().default(sql`clock_timestamp()`),
    actor: text('actor').notNull(),
    role: text('role', { enum: operatorRoles }).notNull(),
    source: text('source', { enum: operationSources }).notNull(),
    action: text('action', { enum: operationActions }).notNull(),
    target: jsonb('target').$type<Readonly<Record<string, string>>>().notNull(),
    outcome: text('outcome', { enum: operationOutcomes }),
    finishedAt: time('finished_at'),
    detail: text('detail'),
  },
  (t) => [
    index('operations_actor').on(t.actor, t.id),
    check('operations_role', sql`role in ('viewer', 'operator')`),
    check('operations_source', sql`source in ('console', 'command')`),
    check('operations_outcome', sql`outcome in ('done', 'failed', 'refused')`),
    check('operations_end', sql`(outcome is null) = (finished_at is null)`),
  ],
);

/**
 * Alarms. A row is written when an alarm's condition begins. The alarm opens when the condition has
 * lasted for the alarm's minutes, and closes when it is over. `notifiedAt` is when NOTIFY_URL last
 * accepted a change, and `error` says why it has accepted none since.
 */
export const alerts = metersync.table(
  'alerts',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    name: text('name').notNull(),
    key: text('key').notNull(),
    detail: text('detail').notNull(),
    pendingSince: time('pending_since').notNull(),
    openedAt: time('opened_at'),
    notifiedAt: time('notified_at'),
    error: text('error'),
    closedAt: time('closed_at'),
    /** Who acknowledged the finding, and what it counted at that time. */
    acknowledgedAt: time('acknowledged_at'),
    acknowledgedBy: text('acknowledged_by'),
    acknowledgedNote: text('acknowledged_note'),
    acknowledgedCounts: jsonb('acknowledged_counts').$type<Readonly<Record<string, number>>>(),
  },
  (t) => [
    uniqueIndex('alerts_live').on(t.name, t.key).where(sql`closed_at is null`),
    index('alerts_closed').on(t.closedAt).where(sql`closed_at is not null`),
    check('alerts_open_before_they_close', sql`closed_at is null or opened_at is not null`),
  ],
);

/** One row: when the watch last ran, and what receivers refused, reported through Temporal. */
export const heartbeat = metersync.table(
  'heartbeat',
  {
    one: boolean('one').primaryKey().default(true),
    at: time('at'),
    refused: jsonb('refused').$type<Readonly<Record<string, number>>>(),
    refusedSince: time('refused_since'),
    refusedUntil: time('refused_until'),
  },
  () => [check('heartbeat_has_one_row', sql`one`)],
);

/** Every field that any record ever had. */
export const fieldCatalogue = metersync.table(
  'field_catalogue',
  {
    resource: text('resource').notNull(),
    apiVersion: text('api_version').notNull(),
    path: text('path').notNull(),
    types: text('types').array().notNull(),
    firstSeenAt: time('first_seen_at').notNull().default(sql`clock_timestamp()`),
  },
  (t) => [primaryKey({ columns: [t.resource, t.apiVersion, t.path] })],
);
