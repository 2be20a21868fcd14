import { getTableName, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { EventKind } from '../contract/event.ts';
import type { AuditResource } from '../contract/names.ts';
import { companies, connections, documents, meters, sites, usageData } from './schema/utility.ts';

/** Resources whose records have a table of rows with `raw`. */
export type RecordResource = Exclude<AuditResource, 'intervals'>;

/**
 * Resources with a listing of their own; sites stand in the records of companies, which show them
 * whole.
 */
export type ListedResource = Exclude<RecordResource, 'sites'>;

/** A column that a record tells. */
export interface RecordColumn {
  readonly column: PgColumn;
  /** Its value: of a record `r`, which stands with the company `owner`. */
  readonly of: SQL;
  /**
   * Whether a record that leaves it out leaves what is known: it may be told by events alone, or by
   * other records.
   */
  readonly kept?: true;
  /** Whether only records tell it, and events do not. */
  readonly ofRecords?: true;
  /** Whether it is the owner, which not every record says: see owner.ts. */
  readonly isOwner?: true;
}

/**
 * A resource of the service: what its records, as its endpoints and its events tell them, are in
 * the warehouse.
 */
export interface Resource {
  readonly name: RecordResource;
  /** The kind of the events that tell of its records; null where none do. */
  readonly eventKind: Exclude<EventKind, 'ignored' | 'interval'> | null;
  readonly table: RecordTable;
  readonly columns: readonly RecordColumn[];
  /** Columns that decide between two events of one `updated`, the first one first. */
  readonly ties: readonly PgColumn[];
  /** What its records are called in views of what they hold. */
  readonly key: string;
}

/** A table of records: see `synced` in schema/columns.ts. */
type RecordTable = PgTable & {
  readonly id: PgColumn;
  readonly companyId?: PgColumn;
  /** Where the service says when it last changed a record. */
  readonly updated?: PgColumn;
  /** That time as the record of the row says it: events may have told a later one. */
  readonly rawUpdated?: PgColumn;
  readonly raw: PgColumn;
  readonly apiVersion: PgColumn;
  readonly syncedAt: PgColumn;
  readonly deletedAt: PgColumn;
  readonly deletedReason: PgColumn;
  /** See write/unchanged.ts: where there are many records. */
  readonly digest?: PgColumn;
};

const text = (field: string): SQL => sql.raw(`r ->> '${field}'`);
const time = (field: string): SQL => sql.raw(`metersync.read_time(r ->> '${field}')`);
const day = (field: string): SQL => sql.raw(`(r ->> '${field}')::date`);
const owner = sql.raw('owner');

/** The company that a record names, or of usage its document in it; null where that is none. */
export const companyNamed = (record: SQL): SQL => sql`metersync.uuid_of(coalesce(
        metersync.id_of(${record} -> 'company'),
        metersync.id_of(${record} #> '{document,company}')
      ))`;
const companyOrOwner = sql`coalesce(${companyNamed(sql`r`)}, owner)`;
/** The same, of a record that is refused where it names something else. */
const company = sql.raw(`coalesce(metersync.id_of(r -> 'company')::uuid, owner)`);

/** Of a usage row: the document that it names. */
export const documentNamed = sql.raw(
  `coalesce(metersync.id_of(r -> 'document'), r ->> 'documentId')::uuid`,
);

/**
 * Of a document: its site, else that of its first usage row, where records name it
 * (service-facts 2).
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

/** The name of a resource's table, in `utility` as in `history`. */
export const tableName = (resource: RecordResource): string =>
  getTableName(resources[resource].table);

/** The table of a resource's rows, with its schema. */
export const tableOf = (resource: RecordResource): SQL => sql`${resources[resource].table}`;

/** Whether the records of a resource stand in listings of companies; each record in one, mostly. */
export const isListedByCompany = (resource: RecordResource): boolean =>
  resource !== 'companies' && resource !== 'sites';

/** Whether the records of a resource say when the service last changed them, in `updated`. */
export const isVersioned = (resource: RecordResource): boolean =>
  resources[resource].table.updated !== undefined;

/**
 * Whether the ids of a resource are UUIDs, which the service may spell in more than one way; else
 * any text.
 */
const hasUuids = (resource: RecordResource): boolean =>
  resources[resource].table.id.getSQLType() === 'uuid';

/** An id of a resource, given as text, as its table has it; null where it is none. */
export const idOf = (resource: RecordResource, id: SQL): SQL =>
  hasUuids(resource) ? sql`metersync.uuid_of(${id})` : id;
