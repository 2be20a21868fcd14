import { type SQL, sql } from 'drizzle-orm';
import type { RecordPage } from './page.ts';

/**
 * The columns of a table as expressions over a record `r` of the API: what the record's page writes into them, and what an
 * audit expects there. `known` is the row that is there, for what a record may leave out.
 */
export type Decode<Column extends string> = (
  page: Pick<RecordPage, 'companyId'>,
  known: SQL,
) => Readonly<Record<Column, SQL>>;

const text = (field: string): SQL => sql.raw(`r ->> '${field}'`);
const time = (field: string): SQL => sql.raw(`metersync.read_time(r ->> '${field}')`);
const day = (field: string): SQL => sql.raw(`(r ->> '${field}')::date`);
const company = (page: Pick<RecordPage, 'companyId'>): SQL =>
  sql`coalesce(metersync.id_of(r -> 'company')::uuid, ${page.companyId}::uuid)`;

/** `public_id` is often told by events alone: a record without it leaves what is known. */
const companies: Decode<'external_id' | 'public_id' | 'name'> = (_page, known) => ({
  external_id: text('externalId'),
  public_id: sql`coalesce(r ->> 'publicId', ${known}.public_id)`,
  name: text('name'),
});

/** Of sites, whose records stand in those of their companies, `owner` is the company's id. */
const sites: Decode<'company_id' | 'name'> = () => ({ company_id: sql`owner`, name: text('name') });

const connections: Decode<
  'company_id' | 'external_id' | 'datasource' | 'status' | 'url' | 'created' | 'updated' | 'raw_updated'
> = (page) => ({
  company_id: company(page),
  external_id: text('externalId'),
  datasource: sql`coalesce(r #>> '{datasource,name}', r ->> 'datasource')`,
  status: text('status'),
  url: text('url'),
  created: time('created'),
  updated: time('updated'),
  raw_updated: time('updated'),
});

/**
 * Records name the site on each usage row rather than at the top (service-facts 2), so the first one stands for the
 * document; where neither tells it, what an event told stays.
 */
const documents: Decode<'company_id' | 'site_id' | 'created' | 'updated' | 'raw_updated'> = (
  page,
  known,
) => ({
  company_id: company(page),
  site_id: sql`coalesce(metersync.id_of(r -> 'site'), metersync.id_of(r #> '{usageData,0,site}'), ${known}.site_id::text)::uuid`,
  created: time('created'),
  updated: time('updated'),
  raw_updated: time('updated'),
});

/** A usage row's document, where the row names it; else the given one, as text. */
export const documentOfUsage = (otherwise: SQL): SQL =>
  sql`coalesce(metersync.id_of(r -> 'document'), r ->> 'documentId', ${otherwise})::uuid`;

/** Where the row's company is not told, that of `known`. */
const usageData: Decode<
  | 'company_id'
  | 'document_id'
  | 'meter_id'
  | 'start_date'
  | 'end_date'
  | 'usage'
  | 'usage_units'
  | 'created'
  | 'updated'
> = (page, known) => ({
  company_id: sql`coalesce(${page.companyId}::uuid, metersync.id_of(r #> '{document,company}')::uuid, ${known}.company_id)`,
  document_id: documentOfUsage(sql`${known}.document_id::text`),
  meter_id: sql`coalesce(metersync.id_of(r -> 'meter'), r ->> 'meterId')`,
  start_date: day('startDate'),
  end_date: day('endDate'),
  usage: sql`(r ->> 'usage')::numeric`,
  usage_units: text('usageUnits'),
  created: time('created'),
  updated: time('updated'),
});

const meters: Decode<'company_id' | 'site_id' | 'account_id' | 'datasource_type'> = (page) => ({
  company_id: sql`${page.companyId}::uuid`,
  site_id: sql`coalesce(metersync.id_of(r -> 'site'), r ->> 'siteId')::uuid`,
  account_id: sql`metersync.id_of(r -> 'account')`,
  datasource_type: text('datasourceType'),
});

export const decoded = { companies, sites, connections, documents, usageData, meters } as const;

/** The sites that a connection's record relates it to, from the elements `x` of an array of relations; one may come twice. */
export const relatedSites = sql.raw(`metersync.id_of(x -> 'site')::uuid as site_id,
  metersync.text_array(x -> 'accountIds') as account_ids, metersync.text_array(x -> 'datasourceTypes') as datasource_types`);

/** Values of the columns, in their order. */
export function inOrder<Column extends string>(
  columns: readonly Column[],
  values: Readonly<Record<Column, SQL>>,
): SQL {
  return sql.join(
    columns.map((column) => values[column]),
    sql`, `,
  );
}
