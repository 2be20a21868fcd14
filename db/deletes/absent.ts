import { type SQL, sql } from 'drizzle-orm';
import { recordRead } from '../backfill/strangers.ts';
import { lookAtOnce } from '../catch-up/stale.ts';
import {
  array,
  columnNames,
  printedUuids,
  type RowOf,
  setToExcluded,
} from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { type RecordResource, resources, tableOf } from '../resources.ts';
import { alsoListed, deletes } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';
import { explained, inNoOtherListing, isKept, isKeptOrHeld, untouchedSince } from './explained.ts';
import { keyOfNoted, note, row, tombstone } from './tombstone.ts';

/**
 * A listing of a company. Without a company: the list of companies, the sites of all of them, or rows that no
 * company owns.
 */
export interface Listing {
  readonly resource: RecordResource;
  readonly companyId: string | null;
  /** Companies that live, with their sites, without being in a list: settings name them. */
  readonly configured?: readonly string[];
}

/** What a pass listed, and when it began by the warehouse's clock. */
export interface Seen {
  readonly ids: readonly string[];
  readonly beganAt: string;
}

/**
 * Whether the listing should contain a row. A company may be in no list if the settings name it, or if no
 * list ever contained it and its records were read. A site may be in no list if its company's record has no
 * list of sites.
 */
const listed = ({ resource, companyId, configured = [] }: Listing): SQL => {
  const ofCompany =
    companyId === null ? sql`${row.companyId} is null` : sql`${row.companyId} = ${companyId}::uuid`;
  const named = array(printedUuids(configured), 'uuid');
  switch (resource) {
    case 'companies':
      return sql`${row.deletedAt} is null
    and not (${row.id} = any(${named}))
    and (${row.raw} is not null or not ${recordRead(sql`${row.id}`)})`;
    case 'sites':
      return sql`${row.deletedAt} is null
    and ${companyId === null ? sql`not (${row.companyId} = any(${named}))` : ofCompany}
    and ${hasListOfSites}`;
    default:
      return sql`${row.deletedAt} is null
    and ${ofCompany}`;
  }
};

/** Whether the record of a site's company has a list of sites. */
export const hasListOfSites = sql`exists (
      select
      from ${companies}
      where ${companies.id} = ${row.companyId}
        and jsonb_typeof(${companies.raw} -> 'sites') = 'array'
      offset 0
    )`;

/**
 * Whether a row is absent: the pass did not list it, no other listing does, nothing has touched it since, and
 * nobody decided to keep it.
 */
const absentFrom = ({ resource }: Listing, { ids, beganAt }: Seen): SQL => {
  const seen = printedUuids(ids);
  // An empty list of companies proves nothing about companies that it never listed.
  const neverListed =
    resource === 'companies' && ids.length === 0 ? sql`${row.raw} is not null and` : sql``;
  return sql`${neverListed} not (${row.id}::text = any(${array(seen, 'text')}))
    and ${inNoOtherListing(resource)}
    and ${untouchedSince(resource, sql`${beganAt}::timestamptz`)}
    and not ${isKept(resource)}`;
};

interface Counted extends Record<string, unknown> {
  readonly live: number;
  readonly absent: number;
  readonly shared: boolean;
}

/**
 * Counts the live rows of a listing, and how many of `among` are absent from a pass. `shared` says whether
 * any listing of the kind contains records of another owner. Decisions to keep rows end for rows that the
 * pass listed, because the service shows them again.
 */
export async function countAbsent(
  db: Executor,
  listing: Listing,
  seen: Seen,
  among: SQL = sql`true`,
): Promise<Counted> {
  const result = await hot(db, 'countAbsent').execute<Counted>(sql`
    with shown as (
      delete from ${deletes}
      where ${deletes.state} in ('rejected', 'undone')
        and ${deletes.resource} = ${listing.resource}
        and ${deletes.companyId} is not distinct from ${listing.companyId}::uuid
        and ${deletes.recordId} = any(${array(printedUuids(seen.ids), 'text')})
    )
    select
      count(*)::int as live,
      count(*) filter (where ${absentFrom(listing, seen)} and ${among})::int as absent,
      (
        select count(*) > 0
        from (
          select
          from ${alsoListed}
          where ${alsoListed.resource} = ${listing.resource}
          order by ${alsoListed.recordId}
          limit 1
        ) other
      ) as shared
    from ${tableOf(listing.resource)} ${row}
    where ${listed(listing)}`);
  return result.rows[0] ?? { live: 0, absent: 0, shared: false };
}

/**
 * Whether the cap counts an absent row: nothing explains its absence. A row that was never read has
 * no data to lose, but an empty listing proves nothing about it.
 */
const capped = (resource: RecordResource, { ids }: Seen): SQL =>
  sql`(${ids.length === 0} or ${row.raw} is not null) and not ${explained(resource)}`;

/**
 * How many rows a run may tombstone whose absence nothing explains: the smaller of `rows` and
 * `percent` of the live rows, where the share is never below 3 rows. More are quarantined until an
 * operator decides.
 */
export interface DeletesCap {
  readonly rows: number;
  readonly percent: number;
}

/** Lets a run tombstone only what is explained. */
export const onlyExplained: DeletesCap = { rows: 0, percent: 0 };

/** The least share of live rows that a run may tombstone, in rows. */
const leastShare = 3;

/** Whether this many rows are more than a run may tombstone. `least` are always few enough. */
export const overCap = (
  { rows, percent }: DeletesCap,
  gone: number,
  live: number,
  least = leastShare,
): boolean => gone > Math.min(rows, Math.max(least, Math.floor((live * percent) / 100)));

/**
 * Tombstones the rows that stable passes did not list; a later read of the record undoes this. Rows that were
 * touched since the first pass began are not changed, and neither are rows that somebody decided to keep.
 * Rows beyond the cap whose absence nothing explains are quarantined: they stay live until an operator
 * decides. Also returns how many of the tombstoned rows have pending events, because the event of a deletion
 * was lost. These are due at once, and the next catch-up settles them.
 */
export async function retireAbsent(
  db: Database,
  runId: string,
  listing: Listing,
  seen: Seen,
  cap: DeletesCap,
): Promise<{ quarantined: number; awaited: number }> {
  const { resource, companyId } = listing;
  return await withTransaction(db, async (tx) => {
    const listed = await clearQuarantine(tx, listing);
    const { live, absent } = await countAbsent(tx, listing, seen, capped(resource, seen));
    const tooMany = overCap(cap, absent, live);
    const noted = await noteAbsent(tx, runId, listing, seen, { tooMany, listed });
    // A read or an event may have touched a row until its lock was granted.
    const which = sql`${note.state} = 'applied'
      and ${note.companyId} is not distinct from ${companyId}::uuid
      and ${row.deletedAt} is null
      and ${untouchedSince(resource, sql`${note.absentSince}`)}`;
    await tombstone(tx, runId, resource, which);
    const [applied, quarantined] = [idsOf(noted, 'applied'), idsOf(noted, 'quarantined')];
    const spared = await dropSpared(tx, runId, resource, applied);
    const { eventKind } = resources[resource];
    const gone = applied.filter((id) => !spared.has(id));
    const awaited = eventKind === null ? 0 : await lookAtOnce(tx, eventKind, gone);
    return { quarantined: quarantined.length, awaited };
  });
}

/**
 * Notes the absent rows of a listing: each is tombstoned now or quarantined. What an earlier run saw
 * listed as deleted stays known.
 */
async function noteAbsent(
  tx: Executor,
  runId: string,
  listing: Listing,
  seen: Seen,
  { tooMany, listed: before }: { readonly tooMany: boolean; readonly listed: readonly string[] },
): Promise<Noted[]> {
  const { resource, companyId } = listing;
  const noted = await tx.execute<Noted>(sql`
    insert into ${deletes} (${columnNames(notedColumns)})
    select
      ${runId}::uuid,
      ${companyId}::uuid,
      ${resource},
      ${row.id}::text,
      case
        when ${tooMany} and ${capped(resource, seen)} or ${isKeptOrHeld(resource)} then 'quarantined'
        else 'applied'
      end,
      case
        when ${row.id}::text = any(${array(before, 'text')}) then 'listed'
        else 'absent'
      end,
      ${seen.beganAt}::timestamptz
    from ${tableOf(resource)} ${row}
    where ${listed(listing)}
      and ${absentFrom(listing, seen)}
    order by ${row.id}
    on conflict (run_id, resource, record_id) do update set
      ${setToExcluded([deletes.companyId, deletes.state, deletes.reason, deletes.absentSince])}
    returning record_id, state`);
  return noted.rows;
}

/** Drops the notes of rows that were not tombstoned after all; returns their ids. */
async function dropSpared(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  ids: readonly string[],
): Promise<Set<string>> {
  const spared = await tx.execute<RowOf<typeof deletes.recordId>>(sql`
    delete from ${deletes} ${note}
    where ${note.runId} = ${runId}::uuid
      and ${note.resource} = ${resource}
      and ${note.recordId} = any(${array(ids, 'text')})
      and not exists (
        select
        from ${tableOf(resource)} ${row}
        where ${row.id} = ${keyOfNoted(resource)}
          and ${row.deletedReason} = ${note.reason}
        offset 0
      )
    returning ${note.recordId}`);
  return new Set(spared.rows.map(({ record_id }) => record_id));
}

type Noted = RowOf<typeof deletes.recordId> & RowOf<typeof deletes.state>;

const idsOf = (noted: readonly Noted[], wanted: Noted['state']): string[] =>
  noted.flatMap(({ record_id, state }) => (state === wanted ? [record_id] : []));

const notedColumns = [
  deletes.runId,
  deletes.companyId,
  deletes.resource,
  deletes.recordId,
  deletes.state,
  deletes.reason,
  deletes.absentSince,
];

/**
 * Counts the rows of a listing that a run tombstoned, over all its attempts. With companies go their
 * sites and their records: a run begins with the list of companies.
 */
export const tombstonedBy = (runId: string, { resource, companyId }: Listing): SQL => sql`
  select count(*)
  from ${deletes}
  where ${deletes.runId} = ${runId}::uuid
    and ${deletes.state} = 'applied'
    and (
      ${resource} = 'companies'
      or ${deletes.resource} = ${resource}
        and ${deletes.companyId} is not distinct from ${companyId}::uuid
    )`;

export async function countTombstoned(
  db: Executor,
  runId: string,
  listing: Listing,
): Promise<number> {
  const result = await db.execute<{ rows: number }>(
    sql`select (${tombstonedBy(runId, listing)})::int as rows`,
  );
  return result.rows[0]?.rows ?? 0;
}

/** Clears what an earlier pass quarantined: a later pass has judged the listing again. */
export const clearingQuarantine = ({ resource, companyId }: Listing): SQL => sql`
  delete from ${deletes}
  where ${deletes.state} = 'quarantined'
    and ${deletes.resource} = ${resource}
    and ${deletes.companyId} is not distinct from ${companyId}::uuid`;

/** Does the same, and returns the ids of the rows that the service listed as deleted. */
export async function clearQuarantine(db: Executor, listing: Listing): Promise<string[]> {
  const cleared = await db.execute<RowOf<typeof deletes.recordId> & RowOf<typeof deletes.reason>>(
    sql`${clearingQuarantine(listing)}
  returning record_id, reason`,
  );
  return cleared.rows.flatMap(({ record_id, reason }) => (reason === 'listed' ? [record_id] : []));
}
