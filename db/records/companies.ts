import { and, eq, isNotNull, isNull, not, or, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Executor } from '../connection/connect.ts';
import { listedByCompanies, resources } from '../resources.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';

type OfCompanies = PgTable & { readonly companyId?: PgColumn };

/**
 * Whether a table has a row of a company. `materialized` hides that one row is enough: otherwise
 * the planner may read all rows in order, because it expects to find a match soon.
 */
export function anyOf(table: OfCompanies, companyId: SQLWrapper, also = sql`true`): SQL {
  return sql`exists (
  with theirs as materialized (
    select from ${table}
    where ${table.companyId} = ${companyId}
      and ${also}
  )
  select from theirs
)`;
}

/** Whether any record of a company was ever read from the service. */
export const recordRead = (companyId: SQLWrapper): SQL => {
  const read = listedByCompanies.map((resource) =>
    anyOf(resources[resource].table, companyId, isNotNull(resources[resource].table.raw)),
  );
  return sql`(${sql.join(read, sql` or `)})`;
};

/** Whether a company has a live row that the service confirmed. */
export async function isConfirmedCompany(db: Executor, companyId: string): Promise<boolean> {
  const { id, raw, deletedAt } = companies;
  const live = await db
    .select({ id })
    .from(companies)
    .where(and(eq(id, companyId), isNull(deletedAt), or(isNotNull(raw), recordRead(id))));
  return live.length > 0;
}

/**
 * Inserts or restores a company whose records the service showed, with what its newest event says about it: not
 * every service lists companies.
 */
export async function introduceCompany(db: Executor, companyId: string): Promise<void> {
  await db.execute(sql`
    insert into ${companies} as held (id, external_id, public_id, name)
    select
      asked.id, said.company ->> 'externalId', said.company ->> 'publicId', said.company ->> 'name'
    from (select ${companyId}::uuid as id) asked
      left join lateral (
        select said.payload -> 'company' as company
        from (
            select id, occurred_at
            from ${journal}
            where company_id = asked.id
          ) event
          cross join lateral (
            select payload from ${eventPayloads} where id = event.id offset 0
          ) said
        order by event.occurred_at desc nulls last, said.payload -> 'company'
        limit 1
      ) said on true
    on conflict (id) do update set
      absent_since = null,
      absent_by = null
    where held.deleted_at is not null
      and held.raw is null`);
}

/** Tombstones a company that the service does not have, unless it or a record of it was ever read. */
export async function retireUnread(db: Executor, companyId: string): Promise<void> {
  const { id, raw, deletedAt } = companies;
  await db
    .update(companies)
    .set({ absentSince: sql`clock_timestamp()`, absentBy: 'not_found' })
    .where(and(eq(id, companyId), isNull(raw), isNull(deletedAt), not(recordRead(id))));
}

/** Inserts or restores companies that have to be read although no listing contains them. */
export async function noteCompanies(db: Executor, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db
    .insert(companies)
    .values([...new Set(ids)].sort().map((id) => ({ id })))
    .onConflictDoUpdate({
      target: companies.id,
      set: { absentSince: null, absentBy: null },
      setWhere: isNotNull(companies.deletedAt),
    });
}

/** Whether the warehouse has a row of a company, live or tombstoned. */
export async function hasCompany(db: Executor, id: string): Promise<boolean> {
  const rows = await db.select({ id: companies.id }).from(companies).where(eq(companies.id, id));
  return rows.length > 0;
}

/** Lists live companies with an external id. The service does not promise that it is unique. */
export async function companiesOfExternalId(db: Executor, externalId: string): Promise<string[]> {
  const rows = await db
    .select({ id: companies.id })
    .from(companies)
    .where(and(eq(companies.externalId, externalId), isNull(companies.deletedAt)));
  return rows.map(({ id }) => id);
}
