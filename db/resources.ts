import { getTableName, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { type AuditResource, companyResources } from '../contract/endpoints.ts';
import type { EventKind } from '../contract/event.ts';
import { companies, connections, documents, meters, sites, usageData } from './schema/utility.ts';

/** Resources whose records have a table with `raw`. */
export type RecordResource = Exclude<AuditResource, 'intervals'>;

/** Resources with their own listing. The records of companies contain all sites. */
export type ListedResource = Exclude<RecordResource, 'sites'>;

/** A field of a record `r` that may hold text which is not a value of the expected type. */
export interface TypedField {
  readonly field: string;
  /** The text in the record; NULL or blank if there is no value. */
  readonly sent: SQL;
  /** The value of the text; NULL if the functions of migration 0001 cannot read it. */
  readonly value: SQL;
}

export interface RecordColumn {
  readonly column: PgColumn;
  /** Its value, from a record `r` that the company `owner` lists. */
  readonly of: SQL;
  /** The field that the value is read from; absent if every text is a value. */
  readonly from?: TypedField;
  /** Whether a row keeps its value if a record has none: events or other records may have it. */
  readonly kept?: true;
  /** Whether only records have the value, and events do not. */
  readonly ofRecords?: true;
  /** Whether the value is the owner, which not every record names: see owner.ts. */
  readonly isOwner?: true;
}

/** A resource of the service, and how its records from endpoints and events become rows. */
export interface Resource {
  readonly name: RecordResource;
  /** Who lists its records. `record`: the records of companies list their sites. */
  readonly listedBy: 'service' | 'company' | 'record';
  /** The kind of the events about its records; null if there are none. */
  readonly eventKind: Exclude<EventKind, 'ignored' | 'interval'> | null;
  readonly table: RecordTable;
  readonly columns: readonly RecordColumn[];
  /** Typed fields of generated columns, and ids of parts that have their own tables. */
  readonly parts: readonly TypedField[];
  /** Columns that decide between two events with one `updated`, most important first. */
  readonly ties: readonly PgColumn[];
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
  /** The text of each field that could not be read; NULL if there is none. */
  readonly unreadable: PgColumn;
  /** The digest of the record, in tables with many records: see records/unchanged.ts. */
  readonly digest?: PgColumn;
};

const text = (field: string): SQL => sql.raw(`r ->> '${field}'`);
const idIn = (path: string): SQL => sql.raw(`metersync.id_of(r ${path})`);
const owner = sql.raw('owner');

/** Longest text of an indexed column, in characters: Postgres refuses entries of 2,704 bytes. */
export const indexedMax = 500;

/** A text for an indexed column: NULL if it is too long. */
export const indexable = (sent: SQL): SQL =>
  sql`case when length(${sent}) <= ${sql.raw(String(indexedMax))} then ${sent} end`;

type Parsed = Pick<RecordColumn, 'of' | 'from'>;

const typed = (field: string, sent: SQL, value: SQL): Parsed & { readonly from: TypedField } => ({
  of: value,
  from: { field, sent, value },
});
const time = (field: string) => typed(field, text(field), sql`metersync.read_time(${text(field)})`);
const day = (field: string) => typed(field, text(field), sql`metersync.read_date(${text(field)})`);
const indexed = (field: string) => typed(field, text(field), indexable(text(field)));
const uuid = (field: string, sent: SQL) => typed(field, sent, sql`metersync.uuid_of(${sent})`);
const boolean = (field: string) =>
  typed(field, text(field), sql`metersync.boolean_of(${text(field)})`);

/** The first id of a record's parts that is not a UUID. A part with such an id has no row. */
const partIds = (field: string, id: SQL): TypedField => ({
  field,
  sent: sql`(
          select id
          from jsonb_array_elements(metersync.elements(r -> ${sql.raw(`'${field}'`)})) part
            cross join lateral (select ${id} as id) ids
          where metersync.uuid_of(id) is null
            and id <> ''
          limit 1
        )`,
  value: sql`null::uuid`,
});

/** The company that a record, or the document in a usage record, names. */
const companySent = (record: SQL): SQL => sql`coalesce(
        metersync.id_of(${record} -> 'company'),
        metersync.id_of(${record} #> '{document,company}')
      )`;
/** The company that a record names; null if its id is not a UUID. */
export const companyNamed = (record: SQL): SQL => sql`metersync.uuid_of(${companySent(record)})`;
/** The owner of a record: the company that it names, or otherwise the company that lists it. */
const company = (column: PgColumn): RecordColumn => ({
  column,
  of: sql`coalesce(${companyNamed(sql`r`)}, owner)`,
  from: { field: 'company', sent: companySent(sql`r`), value: companyNamed(sql`r`) },
  isOwner: true,
});

const documentOfUsage = uuid(
  'document',
  sql`coalesce(${idIn("-> 'document'")}, ${text('documentId')})`,
);
/** The document that a usage row names; null if its id is not a UUID. */
export const documentNamed = documentOfUsage.of;

/** The site that a document names, or otherwise the site that its first usage row names. */
const siteOfDocument = uuid(
  'site',
  sql`coalesce(${idIn("-> 'site'")}, ${idIn("#> '{usageData,0,site}'")})`,
);
const meterOfUsage = sql`coalesce(${idIn("-> 'meter'")}, ${text('meterId')})`;

export const resources: Readonly<Record<RecordResource, Resource>> = {
  companies: {
    name: 'companies',
    listedBy: 'service',
    eventKind: null,
    table: companies,
    columns: [
      { column: companies.externalId, ...indexed('externalId') },
      { column: companies.publicId, of: text('publicId'), kept: true },
      { column: companies.name, ...indexed('name') },
    ],
    parts: [partIds('sites', sql`coalesce(part ->> 'id', part::text)`)],
    ties: [],
    key: 'company_id',
  },
  sites: {
    name: 'sites',
    listedBy: 'record',
    eventKind: null,
    table: sites,
    columns: [
      { column: sites.companyId, of: owner, isOwner: true },
      { column: sites.name, of: text('name') },
    ],
    parts: [],
    ties: [],
    key: 'site_id',
  },
  connections: {
    name: 'connections',
    listedBy: 'company',
    eventKind: 'connection',
    table: connections,
    columns: [
      company(connections.companyId),
      { column: connections.externalId, of: text('externalId') },
      {
        column: connections.datasource,
        of: sql.raw(`coalesce(r #>> '{datasource,name}', r ->> 'datasource')`),
      },
      { column: connections.status, ...indexed('status') },
      { column: connections.url, of: text('url') },
      { column: connections.created, ...time('created') },
      { column: connections.updated, ...time('updated') },
      { column: connections.rawUpdated, of: time('updated').of, ofRecords: true },
    ],
    parts: [partIds('sitesRelations', sql`metersync.id_of(part -> 'site')`)],
    ties: [connections.status, connections.url, connections.externalId, connections.datasource],
    key: 'connection_id',
  },
  meters: {
    name: 'meters',
    listedBy: 'company',
    eventKind: null,
    table: meters,
    columns: [
      company(meters.companyId),
      {
        column: meters.siteId,
        ...uuid('site', sql`coalesce(${idIn("-> 'site'")}, ${text('siteId')})`),
      },
      { column: meters.accountId, of: idIn("-> 'account'") },
      { column: meters.datasourceType, of: text('datasourceType') },
    ],
    parts: [],
    ties: [],
    key: 'meter_id',
  },
  documents: {
    name: 'documents',
    listedBy: 'company',
    eventKind: 'document',
    table: documents,
    columns: [
      company(documents.companyId),
      {
        column: documents.siteId,
        ...siteOfDocument,
        kept: true,
      },
      { column: documents.created, ...time('created') },
      { column: documents.updated, ...time('updated') },
      { column: documents.rawUpdated, of: time('updated').of, ofRecords: true },
    ],
    parts: [
      uuid('revisedDocumentId', text('revisedDocumentId')).from,
      partIds('usageData', sql`part ->> 'id'`),
    ],
    ties: [documents.siteId],
    key: 'document_id',
  },
  usageData: {
    name: 'usageData',
    listedBy: 'company',
    eventKind: null,
    table: usageData,
    columns: [
      company(usageData.companyId),
      {
        column: usageData.documentId,
        ...documentOfUsage,
        kept: true,
      },
      {
        column: usageData.meterId,
        ...typed('meter', meterOfUsage, sql`metersync.canonical_id(${indexable(meterOfUsage)})`),
      },
      { column: usageData.startDate, ...day('startDate') },
      { column: usageData.endDate, ...day('endDate') },
      {
        column: usageData.usage,
        ...typed('usage', text('usage'), sql.raw(`metersync.read_number(r -> 'usage')`)),
      },
      { column: usageData.usageUnits, of: text('usageUnits') },
      { column: usageData.created, ...time('created') },
      { column: usageData.updated, ...time('updated') },
    ],
    parts: [
      boolean('isEstimated').from,
      boolean('exclusion').from,
      typed('billedDemand', text('billedDemand'), sql`metersync.number_of(${text('billedDemand')})`)
        .from,
    ],
    ties: [],
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
