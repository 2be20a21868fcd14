import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import {
  type Database,
  type Executor,
  lock,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import {
  companyNamed,
  idOfRecord,
  isVersioned,
  type RecordResource,
  row,
  tableOf,
  updatedOf,
} from '../resources.ts';
import { alsoListed } from '../schema/reads.ts';
import { writeConnectionSites } from './connection-sites.ts';
import { isAhead, type Walk } from './fence.ts';
import { alsoListing, isEntryPreferred, isListedBy, listerOf } from './listers.ts';
import { itemsOf, type RecordPage } from './page.ts';

/**
 * Remembers what a company lists of records whose rows show what another company lists. Without the
 * digest, a record whose texts were replaced is written again when it becomes the row.
 */
export async function rememberListed(
  tx: Executor,
  resource: RecordResource,
  page: RecordPage,
): Promise<void> {
  const newest = isVersioned(resource) ? sql`${updatedOf('r')} desc nulls last,` : sql``;
  await prepared(tx, 'rememberListed').execute(sql`
    with listed as (
      select distinct on (held.id) held.id, r, case when replaced is null then digest end as digest
      from ${itemsOf(page)} item
        cross join lateral (
          select ${row.id}
          from ${tableOf(resource)} ${row}
          where ${row.id} = ${idOfRecord(resource)}
            and ${listerOf(sql`${row}`)} <> ${page.companyId}::uuid
            and ${row.raw} is not null
            and ${row.deletedAt} is null
          for no key update
        ) held
      order by held.id, ${newest} place desc
    )
    insert into ${alsoListed} as entry
      (resource, record_id, company_id, raw, digest, api_version, read_at)
    select
      ${resource}, id::text, ${page.companyId}::uuid, r, digest, ${page.apiVersion},
      ${page.readAt}::timestamptz
    from listed
    on conflict (resource, record_id, company_id) do update set
      raw = excluded.raw,
      digest = excluded.digest,
      api_version = excluded.api_version,
      read_at = excluded.read_at
    where coalesce(entry.read_at <= excluded.read_at, true)
      and (entry.raw, entry.digest) is distinct from (excluded.raw, excluded.digest)`);
}

/**
 * Ends what a company was known to list and no longer lists. A row that showed it now shows what
 * another company lists, if any does; see retireAbsent for the others. If a later walk over the
 * listing was proved, it does nothing.
 */
export async function forgetListed(
  db: Database | Transaction,
  listing: { readonly resource: RecordResource; readonly companyId: string },
  seen: {
    readonly ids: readonly string[];
    readonly beganAt: string;
    /** The listing that was walked, if another listing is judged by it. */
    readonly of?: Omit<Walk, 'began'> | undefined;
  },
): Promise<void> {
  const { resource, companyId } = listing;
  const walk: Walk = { ...(seen.of ?? listing), began: seen.beganAt };
  const listed = array(printedUuids(seen.ids), 'text');
  await withTransaction(db, async (tx) => {
    await lock(tx, alsoListed);
    const { rows } = await prepared(tx, 'forgetListed').execute<{ id: string }>(sql`
    with forgotten as (
      delete from ${alsoListed}
      where company_id = ${companyId}::uuid
        and resource = ${resource}
        and not (record_id = any(${listed}))
        and ${isAhead(walk, 'absences')}
    ), other as materialized (
      select ${row.id} as row_id, other.*
      from ${tableOf(resource)} ${row}
        cross join lateral (
          select other.*
          from ${alsoListing(resource)} other
          order by ${firstOf(resource)}
          limit 1
        ) other
      where ${isListedBy(sql`${companyId}::uuid`)}
        and ${row.deletedAt} is null
        and (${row.syncedAt} is null or ${row.syncedAt} < ${seen.beganAt}::timestamptz)
        and ${isAhead(walk, 'absences')}
        -- Skips the search when no record of the kind is also listed.
        and (select true from ${alsoListed} where resource = ${resource} order by record_id limit 1)
        and not (${row.id}::text = any(${listed}))
      order by ${row.id}
      for no key update of ${row}
    )
    ${showOther(resource)}`);
    if (resource === 'connections') await writeConnectionSites(tx, idsOf(rows));
  });
}

/**
 * Shows what another company is known to list of rows that a listing changed, where that is preferred now,
 * and remembers what their listers list: the service may have gone back to an older state.
 */
export async function yieldToPreferred(
  tx: Transaction,
  resource: RecordResource,
  ids: readonly string[],
): Promise<void> {
  const { rows } = await prepared(tx, 'yieldToPreferred').execute<{ id: string }>(sql`
    with other as materialized (
      select
        ${row.id} as row_id,
        ${listerOf(sql`${row}`)} as lister,
        ${row}.raw as shown,
        case when ${row}.unreadable is null then ${row}.digest end as shown_digest,
        ${row}.api_version as shown_api_version,
        ${row}.synced_at as shown_read_at,
        other.*
      from ${tableOf(resource)} ${row}
        cross join lateral (
          select other.*
          from ${alsoListing(resource)} other
          where other.raw is not null
          order by ${firstOf(resource)}
          limit 1
        ) other
      where ${row.id} = any(${array([...ids].sort(), resource === 'meters' ? 'text' : 'uuid')})
        and ${row.deletedAt} is null
        and ${isEntryPreferred(resource)}
      order by ${row.id}
      for no key update of ${row}
    ), remembered as (
      insert into ${alsoListed}
        (resource, record_id, company_id, raw, digest, api_version, read_at)
      select resource, record_id, lister, shown, shown_digest, shown_api_version, shown_read_at
      from other
      on conflict (resource, record_id, company_id) do update set
        raw = excluded.raw,
        digest = excluded.digest,
        api_version = excluded.api_version,
        read_at = excluded.read_at
    )
    ${showOther(resource)}`);
  if (resource === 'connections') await writeConnectionSites(tx, idsOf(rows));
}

const idsOf = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id);

/** The order of what several companies list of a record: the preferred one is first. */
const firstOf = (resource: RecordResource): SQL => {
  const newest = isVersioned(resource) ? sql`${updatedOf('other.raw')} desc nulls last,` : sql``;
  const isOwn = sql`${companyNamed(sql`other.raw`)} = other.company_id`;
  return sql`${newest} ${isOwn} desc nulls last, other.company_id`;
};

/** The statement that makes the entries `other` the records of their rows `row_id`. */
const showOther = (resource: RecordResource): SQL => {
  const owner = sql`coalesce(${companyNamed(sql`other.raw`)}, other.company_id)`;
  const ofDocument = sql`case
        when ${row}.document_id is null then ${owner} else ${row}.company_id
      end`;
  return sql`update ${tableOf(resource)} ${row} set
      company_id = ${resource === 'usageData' ? ofDocument : owner},
      listed_by = other.company_id,
      raw = coalesce(other.raw, ${row}.raw),
      digest = case
        -- Its usage is written with the next page that has the record.
        when jsonb_typeof(other.raw -> 'usageData') = 'array' then null
        when other.raw is null then ${row}.digest
        else other.digest
      end,
      api_version = coalesce(other.api_version, ${row}.api_version),
      synced_at = coalesce(other.read_at, ${row}.synced_at),
      unreadable = null
    from other
    where ${row}.id = other.row_id
    returning ${row}.id`;
};
