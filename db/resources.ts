import { getTableName, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { alias, type PgColumn, type PgTable } from 'drizzle-orm/pg-core';
import { type AuditResource, companyResources } from '../contract/endpoints.ts';
import type { EventKind } from '../contract/event.ts';
import { earlierStates } from './schema/metersync.ts';
import { companies, connections, documents, meters, sites, usageData } from './schema/utility.ts';

/** Resources whose records have a table with `raw`. */
export type RecordResource = Exclude<AuditResource, 'intervals'>;

/** Resources with their own listing. The records of companies contain all sites. */
export type ListedResource = Exclude<RecordResource, 'sites'>;

/** A column whose value a read of a record decides. */
export interface RecordColumn {
  readonly column: PgColumn;
  /** Whether a row keeps its value if a record has none: events or other records may have it. */
  readonly kept?: true;
  /** Whether the value is the owner, which not every record names: see records/listers.ts. */
  readonly isOwner?: true;
}

/** A resource of the service, and how its records become rows. */
export interface Resource {
  readonly name: RecordResource;
  /** Who lists its records. `record`: the records of companies list their sites. */
  readonly listedBy: 'service' | 'company' | 'record';
  /** The kind of the events about its records; null if there are none. */
  readonly eventKind: Exclude<EventKind, 'ignored' | 'interval'> | null;
  readonly table: RecordTable;
  /** The function that says what the columns of a row say if its record is `r`. */
  readonly read: SQL;
  readonly columns: readonly RecordColumn[];
  /** The column that holds a record's id in views of its parts. */
  readonly key: string;
}

/** A table of records: see `synced` in schema/columns.ts. */
type RecordTable = PgTable & {
  readonly id: PgColumn;
  readonly companyId?: PgColumn;
  /** When the service last changed the record, if it says so. */
  readonly updated?: PgColumn;
  /** `updated` of the record in `raw`; events may have reported a later time. */
  readonly rawUpdated?: PgColumn;
  readonly raw: PgColumn;
  readonly apiVersion: PgColumn;
  readonly syncedAt: PgColumn;
  readonly deletedAt: PgColumn;
  readonly deletedReason: PgColumn;
  readonly absentSince: PgColumn;
  readonly absentBy: PgColumn;
  /** Whose listing shows the record, if it is not the owner's: see records/listers.ts. */
  readonly listedBy?: PgColumn;
  /** The state that the newest event announced, and when it came: see `hint` in schema/columns.ts. */
  readonly hintUpdated?: PgColumn;
  readonly hintCame?: PgColumn;
  /** The text of each field that could not be read; NULL if there is none. */
  readonly unreadable: PgColumn;
  /** The digest of the record, in tables with many records: see records/write-page.ts. */
  readonly digest?: PgColumn;
};

/** The company that a record, or the document in a usage record, names; null if its id is not a UUID. */
export const companyNamed = (record: SQL): SQL =>
  sql`metersync.uuid_of(metersync.company_sent(${record}))`;

/** When the service last changed a record, as the record says. */
export const updatedOf = (record: string): SQL => sql.raw(`metersync.updated_of(${record})`);

/** The columns of a record `r`, as the triggers of the tables compute them. */
const readBy = (name: string): SQL => sql.raw(`metersync.read_${name}(r)`);

/** Columns that hold what the record says. */
const plain = (...columns: PgColumn[]): RecordColumn[] => columns.map((column) => ({ column }));

export const resources: Readonly<Record<RecordResource, Resource>> = {
  companies: {
    name: 'companies',
    listedBy: 'service',
    eventKind: null,
    table: companies,
    read: readBy('company'),
    columns: [
      ...plain(companies.externalId, companies.name),
      { column: companies.publicId, kept: true },
    ],
    key: 'company_id',
  },
  sites: {
    name: 'sites',
    listedBy: 'record',
    eventKind: null,
    table: sites,
    read: readBy('site'),
    columns: [{ column: sites.companyId, isOwner: true }, ...plain(sites.name)],
    key: 'site_id',
  },
  connections: {
    name: 'connections',
    listedBy: 'company',
    eventKind: 'connection',
    table: connections,
    read: readBy('connection'),
    columns: [
      { column: connections.companyId, isOwner: true },
      ...plain(
        connections.externalId,
        connections.datasource,
        connections.status,
        connections.url,
        connections.created,
        connections.updated,
      ),
    ],
    key: 'connection_id',
  },
  meters: {
    name: 'meters',
    listedBy: 'company',
    eventKind: null,
    table: meters,
    read: readBy('meter'),
    columns: [
      { column: meters.companyId, isOwner: true },
      ...plain(meters.siteId, meters.accountId, meters.datasourceType),
    ],
    key: 'meter_id',
  },
  documents: {
    name: 'documents',
    listedBy: 'company',
    eventKind: 'document',
    table: documents,
    read: readBy('document'),
    columns: [
      { column: documents.companyId, isOwner: true },
      { column: documents.siteId, kept: true },
      ...plain(documents.created, documents.updated),
    ],
    key: 'document_id',
  },
  usageData: {
    name: 'usageData',
    listedBy: 'company',
    eventKind: null,
    table: usageData,
    read: readBy('usage'),
    columns: [
      { column: usageData.companyId, isOwner: true },
      { column: usageData.documentId, kept: true },
      ...plain(
        usageData.meterId,
        usageData.startDate,
        usageData.endDate,
        usageData.usage,
        usageData.usageUnits,
        usageData.created,
        usageData.updated,
      ),
    ],
    key: 'usage_data_id',
  },
};

export const recordResources = Object.keys(resources) as RecordResource[];

/** Returns the name of a resource's table, in `utility` as in `history`. */
export const tableName = (resource: RecordResource): string =>
  getTableName(resources[resource].table);

/** Returns the table of a resource's rows, with its schema. */
export const tableOf = (resource: RecordResource): SQL => sql`${resources[resource].table}`;

/** Whether companies list a resource's records; most records are in only one listing. */
export const isListedByCompany = (resource: RecordResource): boolean =>
  resources[resource].listedBy === 'company';

/** The resources that companies list: documents before usage, which moves with its document. */
export const listedByCompanies = (companyResources as readonly AuditResource[]).filter(
  (resource): resource is CompanyListed => resource !== 'intervals' && isListedByCompany(resource),
);
export type CompanyListed = Exclude<RecordResource, 'companies' | 'sites'>;

/** Whether the records of a resource say in `updated` when the service last changed them. */
export const isVersioned = (resource: RecordResource): boolean =>
  resources[resource].table.updated !== undefined;

/** Whether the ids of a resource are UUIDs, which have several spellings; otherwise any text. */
const hasUuids = (resource: RecordResource): boolean =>
  resources[resource].table.id.getSQLType() === 'uuid';

/** Converts an id from text to its type in the table; null if it is not valid. */
export const idOf = (resource: RecordResource, id: SQL): SQL =>
  hasUuids(resource) ? sql`metersync.uuid_of(${id})` : id;

/** The id of a record `r`, in the type of its table. */
export const idOfRecord = (resource: RecordResource): SQL =>
  sql.raw(hasUuids(resource) ? `(r ->> 'id')::uuid` : `metersync.canonical_id(r ->> 'id')`);

/** A row of any resource, with only columns that the tables of all resources have. */
export const row = alias(documents, 'row');

/** The table of a resource with the alias `row`. */
export const rowsOf = (resource: RecordResource) =>
  alias(resources[resource].table as typeof documents, 'row');

/** Whether an earlier state is a state of a record. The resource is a literal, as in the indexes. */
export const isStateOf = (resource: RecordResource, id: SQLWrapper | string): SQL => {
  const key = resource === 'meters' ? earlierStates.meterId : earlierStates.id;
  return sql`${earlierStates.resource} = ${sql.raw(`'${resource}'`)} and ${key} = ${id}`;
};
