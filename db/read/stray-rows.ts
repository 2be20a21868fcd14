import { type SQL, sql } from 'drizzle-orm';
import type { CompanyResource } from '../../contract/endpoints.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { row } from '../deletes/tombstone.ts';
import { tableOf } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';
import { hasReadings } from './compare-readings.ts';

/** A row that no audited listing should contain; for readings, their meter. */
export interface StrayRow {
  readonly id: string;
  readonly companyId: string | null;
}

/** Readings are represented by the rows of their meters. */
const rowsOf = (resource: CompanyResource): 'connections' | 'documents' | 'meters' | 'usageData' =>
  resource === 'intervals' ? 'meters' : resource;

/** Whether a row is live. Rows that only events wrote are claims, which the catch-up decides. */
const lives = (resource: CompanyResource): SQL =>
  resource === 'intervals'
    ? hasReadings
    : sql`${row.raw} is not null
          and ${row.deletedAt} is null`;

/**
 * Reads live rows of companies that are not among the audited companies, unless one of these also lists them;
 * for readings, the meters that have any. The owners are read from the index, one by one, because most have
 * many rows.
 */
export async function strayRows(
  db: Executor,
  resource: CompanyResource,
  audited: readonly string[],
): Promise<StrayRow[]> {
  const companyIds = array(audited, 'uuid');
  const table = tableOf(rowsOf(resource));
  const ownerAfter = (before: SQL): SQL => sql`(
        select ${row.companyId}
        from ${table} ${row}
        where ${row.companyId} ${before}
        order by ${row.companyId}
        limit 1
      )`;
  const result = await db.execute<StrayRow & Record<string, unknown>>(sql`
    with recursive owner as (
      select ${ownerAfter(sql`is not null`)} as id
      union all
      select ${ownerAfter(sql`> owner.id`)}
      from owner
      where owner.id is not null
    )
    select
      theirs.id,
      owner.id::text as "companyId"
    from owner
      cross join lateral (
        select ${row.id}::text as id
        from ${table} ${row}
        where ${row.companyId} = owner.id
          and ${lives(resource)}
          and not exists (
            select
            from ${alsoListed} other
            where other.resource = ${rowsOf(resource)}
              and other.record_id = ${row.id}::text
              and other.company_id = any(${companyIds})
            offset 0
          )
        offset 0
      ) theirs
    where owner.id <> all(${companyIds})
    order by id`);
  return result.rows;
}

/** Reads the ids of live rows without a company; for readings, of meters that have any. */
export async function ownerlessRows(db: Executor, resource: CompanyResource): Promise<string[]> {
  const result = await db.execute<{ id: string }>(sql`
    select ${row.id}::text as id
    from ${tableOf(rowsOf(resource))} ${row}
    where ${row.companyId} is null
      and ${lives(resource)}
    order by id`);
  return result.rows.map(({ id }) => id);
}
