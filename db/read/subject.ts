import { sql } from 'drizzle-orm';
import type { TracedKind } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import { companies, connections, documents, meters, sites } from '../schema/utility.ts';

/** What a record is, for people: values by label, in the order of interest; null if it has no value. */
export type Subject = Readonly<Record<string, string | null>>;

const cost = sql`coalesce(b.current_charges, b.total_charges)`;

const statements = {
  document: (id: string) => sql`
    select
      b.provider,
      b.invoice_id as invoice,
      b.account_number as account,
      ${companies.name} as company,
      ${sites.name} as site,
      nullif(concat_ws(' to ', b.start_date, b.end_date), '') as period,
      nullif(concat_ws(' ', ${cost}, case when ${cost} is not null then b.currency end), '') as cost
    from ${documents}
      cross join lateral analytics.read_bill(${documents.raw}) b
      left join ${companies} on ${companies.id} = ${documents.companyId}
      left join ${sites} on ${sites.id} = ${documents.siteId}
    where ${documents.id} = metersync.uuid_of(${id})`,
  connection: (id: string) => sql`
    select
      ${connections.datasource} as provider,
      ${companies.name} as company,
      ${connections.status}
    from ${connections}
      left join ${companies} on ${companies.id} = ${connections.companyId}
    where ${connections.id} = metersync.uuid_of(${id})`,
  meter: (id: string) => sql`
    select
      (
        select string_agg(concat_ws(' ', lower(number ->> 'name'), number ->> 'value'), ', ')
        from jsonb_array_elements(metersync.elements(${meters.raw} -> 'identifiers')) number
      ) as numbers,
      ${meters.datasourceType} as commodity,
      ${companies.name} as company,
      ${sites.name} as site
    from ${meters}
      left join ${companies} on ${companies.id} = ${meters.companyId}
      left join ${sites} on ${sites.id} = ${meters.siteId}
    where ${meters.id} = ${id}`,
} as const satisfies Readonly<Record<TracedKind, (id: string) => unknown>>;

/** Reads what a record is; null if the warehouse has none. */
export async function readSubject(
  db: Executor,
  kind: TracedKind,
  id: string,
): Promise<Subject | null> {
  const { rows } = await db.execute<Record<string, string | null>>(statements[kind](id));
  return rows[0] ?? null;
}
