import { sql } from 'drizzle-orm';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';

/** Companies that are to be read though no listing told of them. */
export async function noteCompanies(db: Executor, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.execute(sql`
    insert into utility.companies as c (id)
    select distinct id from unnest(${array(ids, 'uuid')}) id order by id
    on conflict (id) do update set deleted_at = null, deleted_reason = null
    where c.deleted_at is not null and c.raw is null`);
}

/** Whether the warehouse has a row of a company, alive or not. */
export async function hasCompany(db: Executor, id: string): Promise<boolean> {
  const result = await db.execute(sql`select from utility.companies where id = ${id}::uuid`);
  return (result.rowCount ?? 0) > 0;
}

/** Ids of the companies that live and have an external id, which the service does not promise to be of one alone. */
export async function companiesOfExternalId(db: Executor, externalId: string): Promise<string[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select id from utility.companies
    where external_id = ${externalId} and deleted_at is null`);
  return rows.map(({ id }) => id);
}
