import { desc, eq, ilike, or, sql } from 'drizzle-orm';
import { canonicalUuid } from '../../contract/values.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import {
  companies,
  connections,
  documentNumbers,
  documents,
  meters,
  sites,
  usageData,
} from '../schema/utility.ts';

/** Kinds of ids that the search knows. */
export const foundKinds = [
  'event',
  'run',
  'company',
  'site',
  'document',
  'connection',
  'meter',
] as const;
export type FoundKind = (typeof foundKinds)[number];

/** What was found. `name` is what people call it, and `company` the name of its company, if it has one. */
export type Found = {
  readonly kind: FoundKind;
  readonly id: string;
  readonly name: string | null;
  readonly companyId: string | null;
  readonly company: string | null;
};

/** Selects what the step `found` found, with the names of companies. */
const withCompanies = sql`
    select
      found.kind, found.id, found.name,
      found.company_id as "companyId",
      nullif((select name from ${companies} where id = found.company_id), '') as company
    from found`;

/** Finds everything with the given id, and companies to which the customer gave this id. */
export async function findById(db: Executor, given: string): Promise<Found[]> {
  const id = canonicalUuid(given) ?? null;
  const { rows } = await db.execute<Found>(sql`
    with found as materialized (
      select 'event' as kind, id, type as name, company_id from ${journal} where id = ${given}
      union all
      select 'run', run_id::text, kind, null
      from ${runs}
      where run_id = ${id} and company_id is null and resource is null
      union all
      select 'company', id::text, name, null from ${companies} where id = ${id}
      union all
      (
        select 'company', id::text, name, null
        from ${companies}
        where external_id = ${given}
        limit 10
      )
      union all
      select 'site', id::text, name, company_id from ${sites} where id = ${id}
      union all
      select 'document', id::text, null, company_id from ${documents} where id = ${id}
      union all
      select 'connection', id::text, datasource, company_id from ${connections} where id = ${id}
      union all
      select 'meter', id, null, company_id from ${meters} where id = ${given}
    )
    ${withCompanies}`);
  return rows;
}

/** Maximum number of rows of each kind that a search shows. */
const foundMax = 20;

/**
 * Finds bills by the number of their invoice or account, meters by one of their numbers, and
 * companies, sites and connections by a part of their names. Bills have an index, and the bills of an
 * account are found by its meters: other tables are read as a whole, within the statement time-out of
 * a person's search.
 */
export async function findByName(db: Executor, given: string): Promise<Found[]> {
  const part = partOf(given);
  const account = JSON.stringify([{ name: 'ACCOUNT', value: given }]);
  const { rows } = await db.execute<Found>(sql`
    with found as materialized (
      (
        select 'company' as kind, id::text, name, null::uuid as company_id
        from ${companies}
        where name ilike ${part}
        order by name
        limit ${foundMax}
      )
      union all
      (
        select 'site', id::text, name, company_id
        from ${sites}
        where name ilike ${part} and company_id is not null
        order by name
        limit ${foundMax}
      )
      union all
      (
        select 'connection', c.id::text, c.datasource, c.company_id
        from ${connections} c
          left join ${companies} company on company.id = c.company_id
        where c.datasource ilike ${part}
        order by c.datasource, company.name
        limit ${foundMax}
      )
      union all
      (
        select 'meter', m.id, numbers.listed, m.company_id
        from ${meters} m
          cross join lateral (
            select
              string_agg(number ->> 'value', ' ') as listed,
              bool_or(number ->> 'value' = ${given}) as has_it
            from jsonb_array_elements(metersync.elements(m.raw -> 'identifiers')) number
          ) numbers
        where numbers.has_it
        order by m.id
        limit ${foundMax}
      )
      union all
      (
        select
          'document', d.id::text,
          concat_ws(', ', raw ->> 'utilityCompany', raw ->> 'invoiceId', raw ->> 'billDate'),
          d.company_id
        from ${documents} d
        where d.id in (
          select id from ${documents} where ${documentNumbers} @> array[${given}]
          union
          select u.document_id
          from ${meters} m
            join ${usageData} u on u.meter_id = m.id
          where metersync.elements(m.raw -> 'identifiers') @> ${account}::jsonb
        )
        order by d.updated desc nulls last
        limit ${foundMax}
      )
    )
    ${withCompanies}`);
  return rows;
}

/**
 * Companies that a text may mean: by id, by the customer's own id, or by a part of the name. `isExact` says
 * whether the text is the whole id or name; such companies come first.
 */
export async function companiesMeant(db: Executor, given: string) {
  const part = partOf(given);
  const { id, name, externalId } = companies;
  const uuid = canonicalUuid(given) ?? null;
  const isId = or(sql`${id} = ${uuid}::uuid`, eq(externalId, given));
  const isExact = sql<boolean>`coalesce(${isId} or lower(${name}) = lower(${given}), false)`;
  return await db
    .select({ id, name, isExact })
    .from(companies)
    .where(or(isId, ilike(name, part)))
    .orderBy(desc(isExact), name, id)
    .limit(foundMax);
}

/** A pattern for texts that contain the given text. */
const partOf = (given: string): string => `%${given.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
