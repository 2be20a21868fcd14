import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { canonicalUuid } from '../../contract/ids.ts';
import { unseenFor } from '../checks/companies-to-check.ts';
import { array, columnNames, printedUuids, setToExcluded, unnested } from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { type DeletesCap, overCap } from '../deletes/absent.ts';
import { untouchedSince } from '../deletes/explained.ts';
import { note, row, tombstone } from '../deletes/tombstone.ts';
import { deletes, runs } from '../schema/metersync.ts';
import {
  companies,
  documents,
  earlierCompanies,
  earlierMeters,
  earlierSites,
  meters,
  sites,
} from '../schema/utility.ts';

/** Returns the day, in UTC, from which a reconcile reads updated records: `days` before today. */
export async function reconciledSince(db: Executor, days: number): Promise<string> {
  const result = await db.execute<{ since: string }>(
    sql`select ((clock_timestamp() at time zone 'UTC')::date - ${days}::int)::text as since`,
  );
  return result.rows[0]?.since ?? '';
}

/**
 * Listings whose records have no `updated`: a page read earlier but written later may change their
 * rows.
 */
export type UntimedListing = 'companies' | 'meters';

/**
 * Returns the listings of a company's rows that changed since the last complete reconcile began. An
 * older page may have changed them after a later read had found them unchanged. The list of
 * companies, which includes the sites, is read once per run.
 */
export async function changedUntimed(
  db: Executor,
  runId: string,
  companyId: string,
): Promise<UntimedListing[]> {
  const changed = (table: PgTable, earlier: PgTable, which: SQL): SQL => sql`exists (
        select
        from (
            select id
            from ${table}
            where ${which}
            offset 0
          ) theirs
          cross join lateral (
            select
            from ${earlier} h
            where h.id = theirs.id
              and h.valid_to >= since.at
            offset 0
          ) state
      )`;
  const ofCompany = sql`company_id = ${companyId}::uuid`;
  const result = await db.execute<Record<UntimedListing, boolean>>(sql`
    with since as materialized (
      select coalesce(
        (
          select ${runs.startedAt}
          from ${runs}
          where ${runs.companyId} is null
            and ${runs.resource} is null
            and ${runs.kind} = 'reconcile'
            and ${runs.state} = 'complete'
            and ${runs.runId} <> ${runId}::uuid
          order by ${runs.finishedAt} desc
          limit 1
        ) - ${unseenFor},
        '-infinity'
      ) as at
    )
    select
      not exists (
        select
        from ${runs}
        where ${runs.runId} = ${runId}::uuid
          and ${runs.companyId} is null
          and ${runs.resource} = 'companies'
          and ${runs.state} <> 'running'
      )
      and (
        ${changed(companies, earlierCompanies, sql`id = ${companyId}::uuid`)}
        or ${changed(sites, earlierSites, ofCompany)}
      ) as companies,
      ${changed(meters, earlierMeters, ofCompany)} as meters
    from since`);
  const [found] = result.rows;
  return untimedListings.filter((listing) => found?.[listing] === true);
}

const untimedListings: readonly UntimedListing[] = ['companies', 'meters'];

/** A document as a listing contained it; `updated` is the service's own text. */
export interface ListedDocument {
  readonly id: string;
  readonly updated: string | null;
}

/** Counts of documents that the service lists as deleted. */
export interface ListedDeletes {
  /** Live documents of the company before. */
  readonly live: number;
  readonly tombstoned: number;
  /** Documents that live until an operator decides. */
  readonly quarantined: number;
}

/**
 * Tombstones documents that the service lists as deleted, and their usage; a later read of them undoes this.
 * Does not change rows that were touched since `beganAt`, rows newer than the listing's state, rows that
 * somebody decided to keep while they were absent, and listed states about which somebody decided.
 * Quarantines documents beyond the cap, and a newer listed state of documents that are kept.
 */
export async function retireListed(
  db: Database,
  runId: string,
  companyId: string,
  listed: readonly ListedDocument[],
  beganAt: string,
  cap: DeletesCap,
): Promise<ListedDeletes> {
  const gone = goneBy(companyId, listed, beganAt);
  return await withTransaction(db, async (tx) => {
    const { live, found } = await countLive(tx, gone, companyId);
    if (found === 0) return { live, tombstoned: 0, quarantined: 0 };
    await noteSeenAgain(tx, gone, beganAt);
    await noteListed(tx, gone, { runId, companyId, beganAt, tooMany: overCap(cap, found, live) });
    const quarantined = await countWaiting(tx, gone);
    const which = sql`${note.state} = 'applied'
      and ${row.companyId} = ${companyId}::uuid
      and ${row.deletedAt} is null
      and ${untouchedSince('documents', sql`${note.absentSince}`)}`;
    const tombstoned = await tombstone(tx, runId, 'documents', which);
    return { live, tombstoned: tombstoned.length, quarantined };
  });
}

/**
 * The documents as steps of a statement, the last one `gone (id, updated)`. Their rows are locked.
 * A listing that moves may contain one twice.
 */
function goneBy(companyId: string, listed: readonly ListedDocument[], beganAt: string): SQL {
  // Documents with other ids are in no table.
  const withUuid = listed.filter(({ id }) => canonicalUuid(id) !== undefined);
  const incoming = unnested('page', withUuid, [
    ['id', 'uuid', ({ id }) => id],
    ['updated', 'text', ({ updated }) => updated],
  ]);
  return sql`
    listed as (
      select distinct on (id) id, metersync.read_time(page.updated) as updated
      from ${incoming}
      order by id, 2 desc nulls last
    ), gone as materialized (
      select ${row.id}::text as id, listed.updated
      from ${documents} ${row}
        join listed on listed.id = ${row.id}
      where ${row.companyId} = ${companyId}::uuid
        and ${row.deletedAt} is null
        and (
          ${row.updated} is null
          or listed.updated is null
          or listed.updated >= ${row.updated}
        )
        and ${untouchedSince('documents', sql`${beganAt}::timestamptz`)}
        and not exists (
          select
          from ${deletes} ${note}
          where ${note.resource} = 'documents'
            and ${note.recordId} = ${row.id}::text
            and ${note.state} in ('rejected', 'undone')
            and (
              ${note.reason} = 'absent'
              or ${note.updated} is not distinct from listed.updated
            )
          offset 0
        )
      order by ${row.id}
      for update of ${row}
    )`;
}

/** Whether a document in `gone` has a note in one of these states. */
const notedAs = (states: SQL): SQL => sql`exists (
  select
  from ${deletes} ${note}
  where ${note.resource} = 'documents'
    and ${note.recordId} = gone.id
    and ${note.state} in (${states})
  offset 0
)`;

/** Counts live documents of the company, and how many of them are in `gone`. */
async function countLive(
  tx: Executor,
  gone: SQL,
  companyId: string,
): Promise<{ live: number; found: number }> {
  const counted = await tx.execute<{ live: number; found: number }>(sql`
    with ${gone}
    select
      (
        select count(*)::int
        from ${documents}
        where ${documents.companyId} = ${companyId}::uuid
          and ${documents.deletedAt} is null
      ) as live,
      (select count(*)::int from gone) as found`);
  return counted.rows[0] ?? { live: 0, found: 0 };
}

/** Counts quarantined documents in `gone`. */
async function countWaiting(tx: Executor, gone: SQL): Promise<number> {
  const counted = await tx.execute<{ waiting: number }>(sql`
    with ${gone}
    select count(*)::int as waiting
    from gone
    where ${notedAs(sql`'quarantined'`)}`);
  return counted.rows[0]?.waiting ?? 0;
}

/**
 * Updates quarantined notes, also of rows that a backfill found absent: that the service lists them
 * as deleted decides it for most people. They keep their run: an operator may be about to name it.
 */
async function noteSeenAgain(tx: Executor, gone: SQL, beganAt: string): Promise<void> {
  await tx.execute(sql`
    with ${gone}
    update ${deletes} ${note}
    set absent_since = ${beganAt}::timestamptz,
      updated = gone.updated,
      reason = 'listed'
    from gone
    where ${note.resource} = 'documents'
      and ${note.recordId} = gone.id
      and ${note.state} = 'quarantined'`);
}

/** Notes the other documents: each is tombstoned now or quarantined. */
async function noteListed(
  tx: Executor,
  gone: SQL,
  by: {
    readonly runId: string;
    readonly companyId: string;
    readonly beganAt: string;
    readonly tooMany: boolean;
  },
): Promise<void> {
  await tx.execute(sql`
    with ${gone}
    insert into ${deletes} (${columnNames(notedColumns)})
    select
      ${by.runId}::uuid,
      ${by.companyId}::uuid,
      'documents',
      id,
      case
        when ${by.tooMany} or ${notedAs(sql`'rejected', 'undone'`)} then 'quarantined'
        else 'applied'
      end,
      'listed',
      updated,
      ${by.beganAt}::timestamptz
    from gone
    where not ${notedAs(sql`'quarantined'`)}
    order by id
    on conflict (run_id, resource, record_id) do update set
        ${setToExcluded([deletes.state, deletes.updated, deletes.absentSince])}`);
}

const notedColumns = [
  deletes.runId,
  deletes.companyId,
  deletes.resource,
  deletes.recordId,
  deletes.state,
  deletes.reason,
  deletes.updated,
  deletes.absentSince,
];

/** Clears the quarantine of documents that a listing of live documents contains. */
export async function clearListed(
  db: Executor,
  companyId: string,
  liveIds: readonly string[],
): Promise<void> {
  await db.execute(sql`
    delete from ${deletes}
    where ${deletes.state} = 'quarantined'
      and ${deletes.reason} = 'listed'
      and ${deletes.resource} = 'documents'
      and ${deletes.companyId} = ${companyId}::uuid
      and ${deletes.recordId} = any(${array(printedUuids(liveIds), 'text')})`);
}
