import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { row } from '../deletes/tombstone.ts';
import { saysOwner } from '../records/owner.ts';
import { idOf, type RecordResource, tableOf } from '../resources.ts';
import { alsoListed, deletes } from '../schema/metersync.ts';

/** Whether the listing of the row's owner lacks the record, and the row waits for a decision. */
const isHeldBack = (resource: RecordResource): SQL => sql`exists (
                select
                from ${deletes}
                where ${deletes.resource} = ${resource}
                  and ${deletes.recordId} = ${row.id}::text
                  and ${deletes.companyId} = ${row.companyId}
                  and ${deletes.state} = 'quarantined'
                offset 0
              )`;

/**
 * Notes that a company lists records that another company owns. Records that name no owner move to
 * the company if its id is less than the id of their owner, or if their owner no longer lists them.
 * It runs for each page with records of other companies.
 */
export async function noteListed(
  tx: Executor,
  resource: RecordResource,
  companyId: string,
  ids: readonly (string | null)[],
): Promise<void> {
  const asked = array(printedUuids(ids).sort(), 'text');
  await hot(tx, 'noteListed').execute(sql`
    with listed as materialized (
      select distinct
        held.id,
        held.company_id,
        held.is_held_back,
        held.may_move and (held.company_id > ${companyId}::uuid or held.is_held_back) as yields
      from unnest(${asked}) as asked (id)
        cross join lateral (
          select
            ${row.id},
            ${row.companyId},
            not ${saysOwner(resource, sql`${row}`)} as may_move,
            ${isHeldBack(resource)} as is_held_back
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
    ), others as (
      insert into ${alsoListed} (resource, record_id, company_id)
      select
        ${resource},
        id::text,
        case when yields then company_id else ${companyId}::uuid end
      from listed
      where not (yields and is_held_back)
      order by id
      on conflict do nothing
    )
    select`);
}
