import { sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { row } from '../deletes/tombstone.ts';
import { saysOwner } from '../records/owner.ts';
import { idOf, type RecordResource, tableOf } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';

/**
 * Notes that a company lists records that another company owns. Records that name no owner move to
 * the company if its id is less than the id of their owner. Returns the ids of the records that
 * moved. It runs for each page with records of other companies.
 */
export async function noteListed(
  tx: Executor,
  resource: RecordResource,
  companyId: string,
  ids: readonly (string | null)[],
): Promise<string[]> {
  const asked = array(printedUuids(ids).sort(), 'text');
  const { rows } = await hot(tx, 'noteListed').execute<{ id: string }>(sql`
    with listed as materialized (
      select distinct held.id, held.company_id, held.yields
      from unnest(${asked}) as asked (id)
        cross join lateral (
          select
            ${row.id},
            ${row.companyId},
            ${row.companyId} > ${companyId}::uuid and not ${saysOwner(resource, sql`${row}`)} as yields
          from ${tableOf(resource)} ${row}
          where ${row.id} = ${idOf(resource, sql`asked.id`)}
            and ${row.companyId} <> ${companyId}::uuid
            and ${row.raw} is not null
            and ${row.deletedAt} is null
          offset 0
          for no key update
        ) held
    ), taken as (
      update ${tableOf(resource)} ${row}
      set company_id = ${companyId}::uuid
      where ${row.id} = any(array(select id from listed where yields))
      returning ${row.id}
    ), others as (
      insert into ${alsoListed} (resource, record_id, company_id)
      select
        ${resource},
        id::text,
        case when yields then company_id else ${companyId}::uuid end
      from listed
      order by id
      on conflict do nothing
    )
    select id
    from taken`);
  return rows.map(({ id }) => id);
}
