import { getTableName, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { AuditResource } from '../contract/endpoints.ts';
import type { EventKind } from '../contract/event.ts';
import { companies, connections, documents, meters, sites, usageData } from './schema/utility.ts';

/** Resources whose records have a table with `raw`. */
export type RecordResource = Exclude<AuditResource, 'intervals'>;

/**
 * Resources with a listing of their own. Sites have none: the records of companies contain them
 * whole.
 */
export type ListedResource = Exclude<RecordResource, 'sites'>;

/** A column with a value from a record. */
export interface RecordColumn {
  readonly column: PgColumn;
  /** Its value, from a record `r` that the company `owner` lists. */
  readonly of: SQL;
  /**
   * Whether a record without it keeps the existing value, which only events or other records may
   * have.
   */
  readonly kept?: true;
  /** Whether only records have it, and events do not. */
  readonly ofRecords?: true;
  /** Whether it is the owner, which not every record names: see owner.ts. */
  readonly isOwner?: true;
}

/** A resource of the service, and how its records from endpoints and events become rows. */
export interface Resource {
  readonly name: RecordResource;
  /** The kind of the events about its records; null if there are none. */
  readonly eventKind: Exclude<EventKind, 'ignored' | 'interval'> | null;
  readonly table: RecordTable;
  readonly columns: readonly RecordColumn[];
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
  /** `updated` of the record in `raw`; events may have reported a later one. */
  readonly rawUpdated?: PgColumn;
  readonly raw: PgColumn;
  readonly apiVersion: PgColumn;
  readonly syncedAt: PgColumn;
  readonly deletedAt: PgColumn;
  readonly deletedReason: PgColumn;
  /** The digest of the record, in tables with many records: see records/unchanged.ts. */
  readonly digest?: PgColumn;
};

const text = (field: string): SQL => sql.raw(`r ->> '${field}'`);
const time = (field: string): SQL => sql.raw(`metersync.read_time(r ->> '${field}')`);
const day = (field: string): SQL => sql.raw(`(r ->> '${field}')::date`);
const owner = sql.raw('owner');

/** The company that a record, or the document in a usage record, names; null if it is no UUID. */
export const companyNamed = (record: SQL): SQL => sql`metersync.uuid_of(coalesce(
        metersync.id_of(${record} -> 'company'),
        metersync.id_of(${record} #> '{document,company}')
      ))`;
const companyOrOwner = sql`coalesce(${companyNamed(sql`r`)}, owner)`;
/** The company that a record names, else its owner; another kind of name has the record refused. */
const company = sql.raw(`coalesce(metersync.id_of(r -> 'company')::uuid, owner)`);

/** The document that a usage row names. */
export const documentNamed = sql.raw(
  `coalesce(metersync.id_of(r -> 'document'), r ->> 'documentId')::uuid`,
);

/**
 * The site of a document, else that of its first usage row, if records name one (service-facts 2).
 */
const siteOfDocument = sql.raw(`coalesce(
          metersync.id_of(r -> 'site'),
          metersync.id_of(r #> '{usageData,0,site}')
        )::uuid`);

export const resources: Readonly<Record<RecordResource, Resource>> = {
  companies: {
    name: 'companies',
    eventKind: null,
    table: companies,
    columns: [
      { column: companies.externalId, of: text('externalId') },
      { column: companies.publicId, of: text('publicId'), kept: true },
      { column: companies.name, of: text('name') },
    ],
    ties: [],
    key: 'company_id',
  },
  sites: {
    name: 'sites',
    eventKind: null,
    table: sites,
    columns: [
      { column: sites.companyId, of: owner, isOwner: true },
      { column: sites.name, of: text('name') },
    ],
    ties: [],
    key: 'site_id',
  },
  connections: {
    name: 'connections',
    eventKind: 'connection',
    table: connections,
    columns: [
      { column: connections.companyId, of: company, isOwner: true },
      { column: connections.externalId, of: text('externalId') },
      {
        column: connections.datasource,
        of: sql.raw(`coalesce(r #>> '{datasource,name}', r ->> 'datasource')`),
      },
      { column: connections.status, of: text('status') },
      { column: connections.url, of: text('url') },
      { column: connections.created, of: time('created') },
      { column: connections.updated, of: time('updated') },
      { column: connections.rawUpdated, of: time('updated'), ofRecords: true },
    ],
    ties: [connections.status, connections.url, connections.externalId, connections.datasource],
    key: 'connection_id',
  },
  meters: {
    name: 'meters',
    eventKind: null,
    table: meters,
    columns: [
      { column: meters.companyId, of: companyOrOwner, isOwner: true },
      {
        column: meters.siteId,
        of: sql.raw(`coalesce(metersync.id_of(r -> 'site'), r ->> 'siteId')::uuid`),
      },
      { column: meters.accountId, of: sql.raw(`metersync.id_of(r -> 'account')`) },
      { column: meters.datasourceType, of: text('datasourceType') },
    ],
    ties: [],
    key: 'meter_id',
  },
  documents: {
    name: 'documents',
    eventKind: 'document',
    table: documents,
    columns: [
      { column: documents.companyId, of: company, isOwner: true },
      {
        column: documents.siteId,
        of: siteOfDocument,
        kept: true,
      },
      { column: documents.created, of: time('created') },
      { column: documents.updated, of: time('updated') },
      { column: documents.rawUpdated, of: time('updated'), ofRecords: true },
    ],
    ties: [documents.siteId],
    key: 'document_id',
  },
  usageData: {
    name: 'usageData',
    eventKind: null,
    table: usageData,
    columns: [
      { column: usageData.companyId, of: companyOrOwner, isOwner: true },
      {
        column: usageData.documentId,
        of: documentNamed,
        kept: true,
      },
      {
        column: usageData.meterId,
        of: sql.raw(
          `metersync.canonical_id(coalesce(metersync.id_of(r -> 'meter'), r ->> 'meterId'))`,
        ),
      },
      { column: usageData.startDate, of: day('startDate') },
      { column: usageData.endDate, of: day('endDate') },
      { column: usageData.usage, of: sql.raw(`(r ->> 'usage')::numeric`) },
      { column: usageData.usageUnits, of: text('usageUnits') },
      { column: usageData.created, of: time('created') },
      { column: usageData.updated, of: time('updated') },
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

/** Whether companies list the records of a resource, each record mostly in one listing. */
export const isListedByCompany = (resource: RecordResource): boolean =>
  resource !== 'companies' && resource !== 'sites';

/** Whether the records of a resource say in `updated` when the service last changed them. */
export const isVersioned = (resource: RecordResource): boolean =>
  resources[resource].table.updated !== undefined;

/** Whether the ids of a resource are UUIDs, which have several spellings; otherwise any text. */
const hasUuids = (resource: RecordResource): boolean =>
  resources[resource].table.id.getSQLType() === 'uuid';

/** Converts an id from text to its type in the table; null if it is not valid. */
export const idOf = (resource: RecordResource, id: SQL): SQL =>
  hasUuids(resource) ? sql`metersync.uuid_of(${id})` : id;
