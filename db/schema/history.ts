import { index, pgSchema, text, uuid } from 'drizzle-orm/pg-core';
import { time } from './columns.ts';
import {
  companyColumns,
  connectionColumns,
  documentColumns,
  meterColumns,
  siteColumns,
  usageDataColumns,
} from './utility.ts';

/**
 * Earlier states of the records, one table per resource. A trigger writes them with the change that
 * ends them.
 */
export const history = pgSchema('history');

export const endedByKinds = ['event', 'run'] as const;

const state = () => ({
  validFrom: time('valid_from').notNull(),
  validTo: time('valid_to').notNull(),
  endedByKind: text('ended_by_kind', { enum: endedByKinds }),
  endedBy: text('ended_by'),
});

export const companies = history.table(
  'companies',
  { id: uuid('id').notNull(), ...companyColumns(), ...state() },
  (t) => [index('history_companies_id').on(t.id, t.validTo)],
);

export const sites = history.table(
  'sites',
  { id: uuid('id').notNull(), ...siteColumns(), ...state() },
  (t) => [index('history_sites_id').on(t.id, t.validTo)],
);

export const connections = history.table(
  'connections',
  { id: uuid('id').notNull(), ...connectionColumns(), ...state() },
  (t) => [index('history_connections_id').on(t.id, t.validTo)],
);

export const documents = history.table(
  'documents',
  { id: uuid('id').notNull(), ...documentColumns(), ...state() },
  (t) => [
    index('history_documents_id').on(t.id, t.validTo),
    index('history_documents_company').on(t.companyId),
  ],
);

export const usageData = history.table(
  'usage_data',
  { id: uuid('id').notNull(), ...usageDataColumns(), ...state() },
  (t) => [index('history_usage_data_id').on(t.id, t.validTo)],
);

export const meters = history.table(
  'meters',
  { id: text('id').notNull(), ...meterColumns(), ...state() },
  (t) => [index('history_meters_id').on(t.id, t.validTo)],
);
