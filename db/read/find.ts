import { sql } from 'drizzle-orm';
import { canonicalUuid } from '../../contract/ids.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, runs } from '../schema/metersync.ts';
import { companies, connections, documents, meters, sites } from '../schema/utility.ts';

/** Kinds of ids that the search knows. */
export const foundKinds = ['event', 'run', 'company', 'document', 'connection', 'meter'] as const;
/** A site has no page: it is found with the id of its company. */
export type FoundKind = (typeof foundKinds)[number] | 'site';

/** A thing with the given id; `name` is what a person calls it, if it has one. */
export interface Found {
  readonly kind: FoundKind;
  readonly id: string;
  readonly name: string | null;
}

/** Finds what has an id, or the id that a customer gave it. */
export async function findById(db: Executor, given: string): Promise<Found[]> {
  const id = canonicalUuid(given) ?? null;
  const result = await db.execute<Found & Record<string, unknown>>(sql`
    select
      'event' as kind,
      ${journal.id},
      ${journal.type} as name
    from ${journal}
    where ${journal.id} = ${given}
    union all
    select
      'run',
      ${runs.runId}::text,
      ${runs.kind}
    from ${runs}
    where ${runs.runId} = ${id}::uuid
      and ${runs.companyId} is null
      and ${runs.resource} is null
    union all
    select
      'company',
      ${companies.id}::text,
      ${companies.name}
    from ${companies}
    where ${companies.id} = ${id}::uuid
    union all
    (
      select
        'company',
        ${companies.id}::text,
        ${companies.name}
      from ${companies}
      where ${companies.externalId} = ${given}
      limit 10
    )
    union all
    select
      'document',
      ${documents.id}::text,
      null
    from ${documents}
    where ${documents.id} = ${id}::uuid
    union all
    select
      'connection',
      ${connections.id}::text,
      ${connections.datasource}
    from ${connections}
    where ${connections.id} = ${id}::uuid
    union all
    select
      'meter',
      ${meters.id},
      null
    from ${meters}
    where ${meters.id} = ${given}`);
  return result.rows;
}

/** Rows of a kind that a search shows. */
const foundMax = 20;

/**
 * Finds bills by the number of their invoice or account, meters by one of their numbers, and companies, sites
 * and connections by a part of their names. It reads whole tables, for a person, with a statement time-out.
 */
export async function findByName(db: Executor, given: string): Promise<Found[]> {
  const part = `%${given.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
  const result = await db.execute<Found & Record<string, unknown>>(sql`
    (
      select 'company' as kind, ${companies.id}::text as id, ${companies.name} as name
      from ${companies}
      where ${companies.name} ilike ${part}
      order by ${companies.name}
      limit ${foundMax}
    )
    union all
    (
      select 'site', ${sites.companyId}::text, ${sites.name}
      from ${sites}
      where ${sites.name} ilike ${part}
        and ${sites.companyId} is not null
      order by ${sites.name}
      limit ${foundMax}
    )
    union all
    (
      select 'connection', ${connections.id}::text, concat_ws(', ', ${connections.datasource}, ${companies.name})
      from ${connections}
        left join ${companies} on ${companies.id} = ${connections.companyId}
      where ${connections.datasource} ilike ${part}
      order by ${connections.datasource}, ${companies.name}
      limit ${foundMax}
    )
    union all
    (
      select 'meter', ${meters.id}, concat_ws(', ', numbers.listed, ${companies.name})
      from ${meters}
        cross join lateral (
          select
            string_agg(number ->> 'value', ' ') as listed,
            bool_or(number ->> 'value' = ${given}) as has_it
          from jsonb_array_elements(metersync.elements(${meters.raw} -> 'identifiers')) number
        ) numbers
        left join ${companies} on ${companies.id} = ${meters.companyId}
      where numbers.has_it
      order by ${meters.id}
      limit ${foundMax}
    )
    union all
    (
      select 'document', ${documents.id}::text, concat_ws(
          ', ',
          ${documents.raw} ->> 'utilityCompany',
          ${documents.raw} ->> 'invoiceId',
          ${documents.raw} ->> 'billDate'
        )
      from ${documents}
      where ${documents.raw} ->> 'invoiceId' = ${given}
        or ${documents.raw} ->> 'accountNumber' = ${given}
      order by ${documents.updated} desc nulls last
      limit ${foundMax}
    )`);
  return result.rows;
}
