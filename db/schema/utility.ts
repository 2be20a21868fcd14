import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  date,
  index,
  integer,
  numeric,
  pgSchema,
  primaryKey,
  text,
  uuid,
} from 'drizzle-orm/pg-core';
import { absence, bytea, hint, listedBy, synced, time, unreadable } from './columns.ts';

/** The current state of each resource as the service sent it; migrations have the comments. */
export const utility = pgSchema('utility');

/** Views of `metersync.earlier_states`, one for each resource: analytics/views has their text. */
export const history = pgSchema('history');

/** The condition of small indexes: few rows, if any, have a field that could not be read. */
const hasUnreadable = sql`unreadable is not null`;

export const companies = utility.table(
  'companies',
  {
    id: uuid('id').primaryKey(),
    externalId: text('external_id'),
    publicId: text('public_id'),
    name: text('name'),
    ...synced(),
    ...absence(),
    unreadable: unreadable(),
  },
  (t) => [
    index('companies_unreadable').on(t.id).where(hasUnreadable),
    index('companies_external').on(t.externalId),
    index('companies_name').on(sql`coalesce(name, '')`, t.id),
  ],
);

export const sites = utility.table(
  'sites',
  {
    id: uuid('id').primaryKey(),
    companyId: uuid('company_id'),
    name: text('name'),
    ...synced(),
    ...absence(),
    unreadable: unreadable(),
  },
  (t) => [
    index('sites_company').on(t.companyId),
    index('sites_unreadable').on(t.companyId).where(hasUnreadable),
  ],
);

export const connections = utility.table(
  'connections',
  {
    id: uuid('id').primaryKey(),
    companyId: uuid('company_id'),
    externalId: text('external_id'),
    datasource: text('datasource'),
    status: text('status'),
    url: text('url'),
    created: time('created'),
    updated: time('updated'),
    rawUpdated: time('raw_updated'),
    ...synced(),
    ...absence(),
    ...hint(),
    listedBy: listedBy(),
    digest: bytea('digest'),
    unreadable: unreadable(),
  },
  (t) => [
    index('connections_unreadable').on(t.companyId).where(hasUnreadable),
    index('connections_listed_by').on(t.listedBy).where(sql`listed_by is not null`),
    index('connections_company').on(t.companyId),
    // Includes deleted connections: without statistics, the planner would read all of an index of
    // live connections to find a company's live connections.
    index('connections_status').on(t.status, t.id),
    check('connections_times_are_finite', sql`isfinite(created) and isfinite(updated)`),
  ],
);

export const connectionSites = utility.table(
  'connection_sites',
  {
    connectionId: uuid('connection_id').notNull(),
    siteId: uuid('site_id').notNull(),
    accountIds: text('account_ids').array().notNull(),
    datasourceTypes: text('datasource_types').array().notNull(),
  },
  (t) => [primaryKey({ columns: [t.connectionId, t.siteId] })],
);

export const connectionStatusChanges = utility.table(
  'connection_status_changes',
  {
    connectionId: uuid('connection_id').notNull(),
    oldStatus: text('old_status'),
    status: text('status').notNull(),
    at: time('at').notNull(),
    eventId: text('event_id').notNull(),
  },
  (t) => [primaryKey({ columns: [t.connectionId, t.at, t.status] })],
);

/** The numbers by which people search a bill. */
export const documentNumbers = sql`(array[raw ->> 'invoiceId', raw ->> 'accountNumber'])`;

export const documents = utility.table(
  'documents',
  {
    id: uuid('id').primaryKey(),
    companyId: uuid('company_id'),
    siteId: uuid('site_id'),
    created: time('created'),
    updated: time('updated'),
    rawUpdated: time('raw_updated'),
    usageReadAt: time('usage_read_at'),
    ...synced(),
    revisedDocumentId: uuid('revised_document_id').generatedAlwaysAs(
      sql`metersync.uuid_of(raw ->> 'revisedDocumentId')`,
    ),
    ...absence(),
    ...hint(),
    listedBy: listedBy(),
    digest: bytea('digest'),
    unreadable: unreadable(),
  },
  (t) => [
    index('documents_unreadable').on(t.companyId).where(hasUnreadable),
    index('documents_listed_by').on(t.listedBy).where(sql`listed_by is not null`),
    index('documents_company').on(t.companyId),
    index('documents_successor')
      .on(t.revisedDocumentId)
      .where(sql`revised_document_id is not null`),
    // Without a list of pending entries, which a single write would have to process now and then.
    index('documents_numbers').using('gin', documentNumbers).with({ fastupdate: false }),
    check('documents_times_are_finite', sql`isfinite(created) and isfinite(updated)`),
  ],
);

/** Postgres accepts NaN (its largest number) and infinities, which would ruin every sum. */
const usageIsFinite = sql`usage > '-Infinity' and usage < 'Infinity'`;

/** Fields that sums read have columns: reading them from raw would parse whole records. */
export const usageData = utility.table(
  'usage_data',
  {
    id: uuid('id').primaryKey(),
    companyId: uuid('company_id'),
    documentId: uuid('document_id'),
    meterId: text('meter_id'),
    startDate: date('start_date'),
    endDate: date('end_date'),
    usage: numeric('usage'),
    usageUnits: text('usage_units'),
    created: time('created'),
    updated: time('updated'),
    ...synced(),
    isEstimated: boolean('is_estimated').generatedAlwaysAs(
      sql`metersync.boolean_of(raw ->> 'isEstimated')`,
    ),
    exclusion: boolean('exclusion').generatedAlwaysAs(
      sql`metersync.boolean_of(raw ->> 'exclusion')`,
    ),
    netMeteringType: text('net_metering_type').generatedAlwaysAs(sql`raw ->> 'netMeteringType'`),
    billedDemand: numeric('billed_demand').generatedAlwaysAs(
      sql`metersync.number_of(raw ->> 'billedDemand')`,
    ),
    ...absence(),
    documentDeletedAt: time('document_deleted_at'),
    listedBy: listedBy(),
    digest: bytea('digest'),
    unreadable: unreadable(),
  },
  (t) => [
    index('usage_data_unreadable').on(t.companyId).where(hasUnreadable),
    index('usage_data_listed_by').on(t.listedBy).where(sql`listed_by is not null`),
    index('usage_data_company').on(t.companyId, t.meterId),
    index('usage_data_document').on(t.documentId),
    index('usage_data_meter').on(t.meterId),
    check('usage_data_usage_is_finite', usageIsFinite),
  ],
);

export const meters = utility.table(
  'meters',
  {
    id: text('id').primaryKey(),
    companyId: uuid('company_id'),
    siteId: uuid('site_id'),
    accountId: text('account_id'),
    datasourceType: text('datasource_type'),
    ...synced(),
    ...absence(),
    listedBy: listedBy(),
    digest: bytea('digest'),
    unreadable: unreadable(),
  },
  (t) => [
    index('meters_company').on(t.companyId),
    index('meters_unreadable').on(t.companyId).where(hasUnreadable),
    index('meters_listed_by').on(t.listedBy).where(sql`listed_by is not null`),
  ],
);

/** Partitioned by month of `start_at`, which is in the key and never changes: see the migration. */
export const intervals = utility.table(
  'intervals',
  {
    meterId: text('meter_id').notNull(),
    startAt: time('start_at').notNull(),
    granularitySeconds: integer('granularity_seconds').notNull(),
    usageUnits: text('usage_units').notNull(),
    ordinal: integer('ordinal').notNull().default(0),
    usage: numeric('usage'),
    quality: text('quality'),
    updated: time('updated'),
    syncedAt: time('synced_at').notNull(),
    unreadable: unreadable(),
  },
  (t) => [
    primaryKey({
      name: 'intervals_pk',
      columns: [t.meterId, t.startAt, t.granularitySeconds, t.usageUnits, t.ordinal],
    }),
    index('intervals_start').using('brin', t.startAt),
    check('intervals_usage_is_finite', usageIsFinite),
    check('intervals_granularity_is_positive', sql`granularity_seconds > 0`),
  ],
);
