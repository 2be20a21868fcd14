import { bigint, numeric, pgSchema, text, uuid } from 'drizzle-orm/pg-core';

/** Views of which code lists rows, with the columns that it reads: see analytics/views. */
export const listedSites = pgSchema('analytics')
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
