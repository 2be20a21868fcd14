import { bigint, boolean, date, integer, numeric, pgSchema, text, uuid } from 'drizzle-orm/pg-core';
import { time } from './columns.ts';
import { metersync } from './metersync.ts';

/** The views for analysts, with the columns that code reads: see analytics/views. */
const analytics = pgSchema('analytics');

const ofMonths = () => ({
  companyId: uuid('company_id').notNull(),
  meterId: text('meter_id'),
  month: date('month'),
});

export const monthlyCost = analytics
  .view('monthly_cost', {
    ...ofMonths(),
    currency: text('currency'),
    cost: numeric('cost'),
    billIds: uuid('bill_ids').array(),
  })
  .existing();

export const monthlyUsage = analytics
  .view('monthly_usage', {
    ...ofMonths(),
    siteId: uuid('site_id'),
    site: text('site'),
    commodity: text('commodity'),
    units: text('units'),
    usage: numeric('usage'),
    daysInMonth: integer('days_in_month'),
    daysCovered: integer('days_covered'),
  })
  .existing();

export const intervalCoverage = analytics
  .view('interval_coverage', {
    companyId: uuid('company_id').notNull(),
    meterId: text('meter_id').notNull(),
    month: date('month').notNull(),
    coveredSeconds: bigint('covered_seconds', { mode: 'number' }).notNull(),
    monthSeconds: bigint('month_seconds', { mode: 'number' }).notNull(),
  })
  .existing();

export const loadProfile = analytics
  .view('load_profile', {
    companyId: uuid('company_id').notNull(),
    meterId: text('meter_id').notNull(),
    weekday: integer('weekday').notNull(),
    hour: integer('hour').notNull(),
    averageKw: numeric('average_kw'),
    hoursWithPower: integer('hours_with_power').notNull(),
    netMeteringType: text('net_metering_type'),
  })
  .existing();

export const bills = analytics.view('bills', { companyId: uuid('company_id') }).existing();

export const billCorrections = analytics
  .view('bill_corrections', {
    billId: uuid('bill_id').notNull(),
    companyId: uuid('company_id'),
    provider: text('provider'),
    invoiceId: text('invoice_id'),
    changedAt: time('changed_at').notNull(),
    change: text('change').notNull(),
    fields: text('fields').array().notNull(),
    currency: text('currency'),
    costChange: numeric('cost_change'),
    reason: text('reason'),
  })
  .existing();

export const connectionsNeedingAttention = analytics
  .view('connections_needing_attention', {
    companyId: uuid('company_id').notNull(),
    company: text('company'),
    connectionId: uuid('connection_id').notNull(),
    provider: text('provider'),
    status: text('status').notNull(),
    since: time('since'),
    whatToDo: text('what_to_do').notNull(),
    customerMustAct: boolean('customer_must_act').notNull(),
    dataUntil: date('data_until'),
    isLate: boolean('is_late').notNull(),
  })
  .existing();

/** The same connections without the columns that depend on bills, to find and sort them. */
export const unwellConnections = metersync
  .view('unwell_connections', {
    connectionId: uuid('connection_id').notNull(),
    since: time('since'),
    customerMustAct: boolean('customer_must_act').notNull(),
  })
  .existing();

export const freshness = analytics
  .view('freshness', {
    companyId: uuid('company_id').notNull(),
    publishedUntil: date('utility_published_until'),
    collectedAt: time('service_collected_at'),
    appliedAt: time('applied_at'),
    pendingEvents: integer('pending_events').notNull(),
    isLate: boolean('is_late').notNull(),
    causeOfLateness: text('cause_of_lateness'),
  })
  .existing();

export const siteTimeZones = analytics
  .view('site_time_zones', {
    siteId: uuid('site_id').notNull(),
    companyId: uuid('company_id'),
    timeZone: text('time_zone').notNull(),
    source: text('time_zone_source', { enum: ['site', 'company', 'default'] }).notNull(),
  })
  .existing();

export const listedSites = analytics
  .view('sites', {
    site_id: uuid('site_id').notNull(),
    site: text('site'),
    company_id: uuid('company_id'),
    company: text('company'),
    address: text('address'),
    time_zone: text('time_zone'),
    time_zone_source: text('time_zone_source', { enum: ['site', 'company', 'default'] }).notNull(),
    proposed_time_zone: text('proposed_time_zone'),
    emission_region: text('emission_region'),
    floor_area: numeric('floor_area'),
    floor_area_units: text('floor_area_units'),
  })
  .existing();

export const openIssues = pgSchema('ops')
  .view('open_issues', {
    issueId: bigint('issue_id', { mode: 'number' }).notNull(),
    site: text('site'),
    meter: text('meter'),
    account: text('account'),
    provider: text('provider'),
    invoice: text('invoice_id'),
  })
  .existing();

export const statementAvailability = analytics
  .view('statement_availability', {
    companyId: uuid('company_id').notNull(),
    siteId: uuid('site_id'),
    site: text('site'),
    month: date('month').notNull(),
    superseded: integer('excluded_superseded').notNull(),
    corrected: integer('included_corrected').notNull(),
    metersExpected: integer('meters_expected').notNull(),
    metersBilled: integer('meters_billed').notNull(),
  })
  .existing();
