import { type SQL, sql } from 'drizzle-orm';
import { columnNames, setToExcluded } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { row } from '../deletes/tombstone.ts';
import { isHeldBack, listerOf } from '../records/listers.ts';
import { type Cte, items, type RecordPage } from '../records/page.ts';
import { idOfRecord } from '../records/upsert.ts';
import { isVersioned, type RecordResource, resources, tableOf, updatedOf } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';

const { resource, recordId, companyId, raw, digest, apiVersion, readAt } = alsoListed;
const listed = [raw, digest, apiVersion, readAt];
const columns: SQL = columnNames([resource, recordId, companyId, ...listed]);

/** An entry that is there changes if the company lists another record now. */
const unlessLater: SQL = sql`on conflict (resource, record_id, company_id) do update set
        ${setToExcluded(listed)}
    where coalesce(also_listed.read_at <= excluded.read_at, true)
      and (also_listed.raw, also_listed.digest) is distinct from (excluded.raw, excluded.digest)`;

/**
 * Remembers what a company lists of records whose rows show what another company lists. Without the
 * digest, a record whose texts were replaced is written again when it becomes the row. It runs for
 * each page with such records.
 */
export async function rememberListed(
  tx: Executor,
  resource: RecordResource,
  page: RecordPage,
): Promise<void> {
  const newest = isVersioned(resource) ? sql`${updatedOf('r')} desc nulls last,` : sql``;
  await hot(tx, 'rememberListed').execute(sql`
    with ${items(page)}, listed as (
      select distinct on (held.id)
        held.id,
        r,
        digest
      from item
        cross join lateral (
          select ${row.id}
          from ${tableOf(resource)} ${row}
          where ${row.id} = ${idOfRecord(resources[resource])}
            and ${listerOf(sql`${row}`)} <> ${page.companyId}::uuid
            and ${row.raw} is not null
            and ${row.deletedAt} is null
          offset 0
          for no key update
        ) held
      order by held.id, ${newest} place desc
    )
    insert into ${alsoListed} (${columns})
    select
      ${resource},
      id::text,
      ${page.companyId}::uuid,
      r,
      ${page.replaced ? sql`null::bytea` : sql`digest`},
      ${page.apiVersion},
      ${page.readAt}::timestamptz
    from listed
    ${unlessLater}`);
}

/**
 * A step that remembers what another company lists of records whose rows now show what the company
 * of the page lists. It follows the step `written`, and sees the rows from before.
 */
export const displaced = (
  resource: RecordResource,
  { companyId }: RecordPage,
): Cte => sql`displaced as (
    insert into ${alsoListed} (${columns})
    select
      ${resource},
      held.id::text,
      ${listerOf(sql`held`)},
      held.raw,
      case when held.unreadable is null then held.digest end,
      held.api_version,
      held.synced_at
    from written
      cross join lateral (
        select held.*
        from ${tableOf(resource)} held
        where held.id = written.id
          and not written.inserted
          and written.own
          and ${listerOf(sql`held`)} <> ${companyId}::uuid
          and held.raw is not null
          and held.deleted_at is null
          and not ${isHeldBack(resource, sql`held`)}
        offset 0
      ) held
    order by held.id
    ${unlessLater}
  )`;
