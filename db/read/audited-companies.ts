import { isNull, sql } from 'drizzle-orm';
import { recordRead } from '../backfill/strangers.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { companies } from '../schema/utility.ts';

/**
 * Lists live companies that the service's list need not contain: settings name them, or it never
 * did and records of them were read.
 */
export async function unlistedCompanies(
  db: Executor,
  configured: readonly string[],
): Promise<{ readonly id: string; readonly wasRead: boolean }[]> {
  const result = await db.execute<{ id: string; wasRead: boolean }>(sql`
    with unlisted as (
      select
        ${companies.id},
        ${companies.id} = any(${array(configured, 'uuid')}) as is_named,
        ${recordRead(companies.id)} as was_read
      from ${companies}
      where ${companies.deletedAt} is null
        and (${companies.raw} is null or ${companies.id} = any(${array(configured, 'uuid')}))
    )
    select
      id,
      was_read as "wasRead"
    from unlisted
    where was_read
      or is_named
    order by id`);
  return result.rows;
}

/** Lists live companies, for a service without a list of them. */
export async function liveCompanies(db: Executor): Promise<string[]> {
  const live = await db
    .select({ id: companies.id })
    .from(companies)
    .where(isNull(companies.deletedAt))
    .orderBy(companies.id);
  return live.map(({ id }) => id);
}
