import { type SQL, sql } from 'drizzle-orm';
import type { AuditResource } from '../contract/names.ts';

/** Resources whose records have a table of rows with `raw`. */
export type RecordResource = Exclude<AuditResource, 'intervals'>;

/** Their tables, in `utility` as in `history`. */
export const tables: Readonly<Record<RecordResource, string>> = {
  companies: 'companies',
  sites: 'sites',
  connections: 'connections',
  documents: 'documents',
  usageData: 'usage_data',
  meters: 'meters',
};

export const recordResources = Object.keys(tables) as RecordResource[];

/** The table of a resource's rows, with its schema. */
export const tableOf = (resource: RecordResource): SQL => sql.raw(`utility.${tables[resource]}`);

/** Resources whose records say when the service last changed them, in `updated`. */
export const dated: readonly RecordResource[] = ['connections', 'documents', 'usageData'];
