import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import {
  bigint,
  check,
  date,
  index,
  jsonb,
  numeric,
  pgSchema,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { closedReasons, severities } from '../../contract/names.ts';
import { now, time } from './columns.ts';

/** Tables of the pipeline that analysts read or fill: overrides, factors, issues. */
export const ops = pgSchema('ops');

const isTimeZone = sql`metersync.is_time_zone(time_zone)`;

/** Attributes of a site that the service does not send. */
export const siteOverrides = ops.table(
  'site_overrides',
  {
    siteId: uuid('site_id').primaryKey(),
    timeZone: text('time_zone'),
    emissionRegion: text('emission_region'),
    floorArea: numeric('floor_area'),
    floorAreaUnits: text('floor_area_units'),
  },
  () => [check('site_overrides_time_zone', isTimeZone)],
);

/** Attributes for every site of a company that has no override of its own. */
export const companyOverrides = ops.table(
  'company_overrides',
  {
    companyId: uuid('company_id').primaryKey(),
    timeZone: text('time_zone'),
    emissionRegion: text('emission_region'),
  },
  () => [check('company_overrides_time_zone', isTimeZone)],
);

/** Conversion factors to standard units. A commodity's row precedes the row for all (''). */
export const unitFactors = ops.table(
  'unit_factors',
  {
    units: text('units').notNull(),
    datasourceType: text('datasource_type').notNull().default(''),
    dimension: text('dimension').notNull(),
    standardUnits: text('standard_units').notNull(),
    factor: numeric('factor').notNull(),
    source: text('source').notNull(),
  },
  (t) => [primaryKey({ columns: [t.units, t.datasourceType] })],
);

/** Emission factors; the customer supplies all of them. */
export const emissionFactors = ops.table(
  'emission_factors',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    region: text('region').notNull().default(''),
    datasourceType: text('datasource_type').notNull(),
    scope: smallint('scope').notNull(),
    method: text('method').notNull().default(''),
    validFrom: date('valid_from').notNull().default('-infinity'),
    validTo: date('valid_to').notNull().default('infinity'),
    units: text('units').notNull(),
    kgCo2ePerUnit: numeric('kg_co2e_per_unit').notNull(),
    source: text('source').notNull(),
    version: text('version').notNull().default(''),
    createdAt: time('created_at').notNull().default(now),
  },
  () => [
    check('emission_factors_scope', sql`scope between 1 and 3`),
    check('emission_factors_method', sql`method in ('', 'location', 'market')`),
    check('emission_factors_valid', sql`valid_to > valid_from`),
  ],
);

/** How grave a severity is, from 1 to 3. */
export const rankOf = (severity: SQLWrapper): SQL<number> =>
  sql`case ${severity} when 'error' then 3 when 'warning' then 2 else 1 end`;

/** The priority of open issues in lists: 1 to 3 if acknowledged, otherwise 4 to 6. */
export const priorityOf = (severity: SQLWrapper, acknowledgedAt: SQLWrapper): SQL<number> =>
  sql`(${rankOf(severity)} + case when ${acknowledgedAt} is null then 3 else 0 end)`;
const priority = priorityOf(sql.raw('severity'), sql.raw('acknowledged_at'));

/** Issues that the checks found; an issue that is no longer found is closed. */
export const dataIssues = ops.table(
  'data_issues',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    checkName: text('check_name').notNull(),
    severity: text('severity', { enum: severities }).notNull(),
    companyId: uuid('company_id'),
    entityType: text('entity_type').notNull(),
    entityId: text('entity_id').notNull(),
    subject: text('subject').notNull().default(''),
    evidence: jsonb('evidence').notNull(),
    mayCost: numeric('may_cost')
      .notNull()
      .generatedAlwaysAs(sql`coalesce((evidence ->> 'may_cost')::numeric, 0)`),
    openedAt: time('opened_at').notNull().default(now),
    lastSeenAt: time('last_seen_at').notNull().default(now),
    closedAt: time('closed_at'),
    closedReason: text('closed_reason', { enum: closedReasons }),
    acknowledgedAt: time('acknowledged_at'),
    acknowledgedNote: text('acknowledged_note'),
  },
  (t) => [
    uniqueIndex('data_issues_open')
      .on(t.checkName, t.entityType, t.entityId, t.subject)
      .where(sql`closed_at is null`),
    index('data_issues_company').on(t.companyId, t.checkName),
    // One index to count new issues, and two to list open issues, of all checks and of one check.
    index('data_issues_new')
      .on(t.checkName, t.severity, t.mayCost, t.openedAt, t.id)
      .where(sql`closed_at is null and acknowledged_at is null`),
    // Look-ups of one issue leave out `id > 0`, so that they cannot use the lists' indexes: a plan
    // that is kept could read all issues of a check to find one.
    index('data_issues_listed')
      .on(priority, t.mayCost, t.openedAt, t.id)
      .where(sql`closed_at is null and id > 0`),
    index('data_issues_of_check')
      .on(t.checkName, priority, t.mayCost, t.openedAt, t.id)
      .where(sql`closed_at is null and id > 0`),
    check('data_issues_severity', sql`severity in ('error', 'warning', 'info')`),
    check(
      'data_issues_closed_reason',
      sql`(closed_reason is null) = (closed_at is null) and closed_reason in ('evidence_gone', 'check_off', 'check_removed')`,
    ),
    check(
      'data_issues_acknowledged_note',
      sql`acknowledged_note is null or acknowledged_at is not null`,
    ),
  ],
);
