import { eq, sql } from 'drizzle-orm';
import type { TracedKind } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import { companies, connections, documents, meters, sites } from '../schema/utility.ts';

/** What a record is, for people: values by label, in the order of interest; null if it has no value. */
export type Subject = Readonly<Record<string, string | null>>;

const cost = sql`coalesce(b.current_charges, b.total_charges)`;
const text = (value: string) => sql<string | null>`${sql.raw(value)}`;

const subjects: Readonly<Record<TracedKind, (db: Executor, id: string) => Promise<Subject[]>>> = {
  document: (db, id) =>
    db
      .select({
        provider: text('b.provider'),
        invoice: text('b.invoice_id'),
        account: text('b.account_number'),
        company: companies.name,
        site: sites.name,
        period: text(`nullif(concat_ws(' to ', b.start_date, b.end_date), '')`),
        cost: sql<
          string | null
        >`nullif(concat_ws(' ', ${cost}, case when ${cost} is not null then b.currency end), '')`,
      })
      .from(documents)
      .crossJoinLateral(sql`analytics.read_bill(${documents.raw}) b`)
      .leftJoin(companies, eq(companies.id, documents.companyId))
      .leftJoin(sites, eq(sites.id, documents.siteId))
      .where(eq(documents.id, sql`metersync.uuid_of(${id})`)),
  connection: (db, id) =>
    db
      .select({
        provider: connections.datasource,
        company: companies.name,
        status: connections.status,
      })
      .from(connections)
      .leftJoin(companies, eq(companies.id, connections.companyId))
      .where(eq(connections.id, sql`metersync.uuid_of(${id})`)),
  meter: (db, id) =>
    db
      .select({
        numbers: sql<string | null>`(
          select string_agg(concat_ws(' ', lower(number ->> 'name'), number ->> 'value'), ', ')
          from jsonb_array_elements(metersync.elements(${meters.raw} -> 'identifiers')) number
        )`,
        commodity: meters.datasourceType,
        company: companies.name,
        site: sites.name,
      })
      .from(meters)
      .leftJoin(companies, eq(companies.id, meters.companyId))
      .leftJoin(sites, eq(sites.id, meters.siteId))
      .where(eq(meters.id, id)),
};

/** Reads what a record is; null if the warehouse does not have the record. */
export const readSubject = async (
  db: Executor,
  kind: TracedKind,
  id: string,
): Promise<Subject | null> => (await subjects[kind](db, id))[0] ?? null;
