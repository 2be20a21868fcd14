import { type SQL, sql } from 'drizzle-orm';
import { array, isAmong, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { companyNamed } from '../resources.ts';
import { documents, usageData } from '../schema/utility.ts';
import { isAhead } from './fence.ts';
import { type RecordPage, replacedIn, reportedUsage, withDocuments } from './page.ts';
import { upsertRecords, type WrittenRow } from './upsert.ts';

/** Locks documents in the order of their ids, so that nobody else writes their usage. */
export async function holdDocuments(tx: Executor, documentIds: readonly string[]): Promise<void> {
  await tx
    .select({ id: documents.id })
    .from(documents)
    .where(isAmong(documents.id, documentIds, 'uuid'))
    .orderBy(documents.id)
    .for('no key update');
}

/**
 * Locks the documents of a page of usage, in the order that all writers use. Also inserts rows for
 * documents that have none; they are read later. The page is written in a later snapshot.
 */
export async function lockDocuments(tx: Executor, page: RecordPage): Promise<void> {
  await prepared(tx, 'lockDocuments').execute(sql`
    insert into ${documents} (id, company_id)
    select distinct on (document_id) document_id, coalesce(${companyNamed(sql`r`)}, owner)
    from ${reportedUsage(page)} reported
    where document_id is not null
    order by document_id
    -- An update whose condition is false still locks the row.
    on conflict (id) do update set company_id = excluded.company_id where false`);
}

/**
 * Replaces the usage of documents that a page wrote by the usage that their records list: a record
 * that lists usage lists all of it. The documents are locked by now.
 */
export async function writeUsageOfDocuments(
  tx: Executor,
  page: RecordPage,
  written: readonly WrittenRow[],
): Promise<void> {
  const listing = written.filter(({ listsUsage }) => listsUsage);
  if (listing.length === 0) return;
  const usage = withDocuments(usageOfRecords(listing, page.companyId), page.readAt);
  const rows = await upsertRecords(tx, 'usageData', page, [], usage);
  const existing = listing.filter(({ inserted }) => !inserted);
  if (existing.length > 0)
    await retire(tx, {
      of: idsOf(existing),
      seen: sql`array(
          select metersync.canonical_id(listed ->> 'id')
          from ${documents}
            cross join lateral jsonb_array_elements(metersync.elements(raw -> 'usageData')) listed
          where id = any(${idsOf(listing)})
        )`,
      readAt: page.readAt,
    });
  const losers = rows.flatMap(({ takenFrom }) => takenFrom ?? []);
  await readAgain(tx, listing, losers);
}

/**
 * The usage rows that the records of documents list, as a table. The rows of the documents have
 * them, so Postgres does not parse them again. Two bills that list one row do not take it from each
 * other every night: the row belongs to the bill that was updated later, or at the same time and has
 * the greater id.
 */
const usageOfRecords = (written: readonly WrittenRow[], companyId: string | null): SQL => {
  const texts = written.map(({ replaced = null }) => replaced);
  return sql`(
      select
        row.r,
        row_number() over (
          order by d.raw_updated nulls first, listed.document_id, row.place
        ) as place,
        ${companyId}::uuid as owner,
        null::bytea as digest,
        ${replacedIn('usageData', sql`listed.texts::jsonb`, sql`row.place - 1`)} as replaced,
        listed.document_id
      from unnest(${idsOf(written)}, ${array(texts, 'text')}) as listed (document_id, texts)
        cross join lateral (
          select raw, raw_updated from ${documents} where id = listed.document_id offset 0
        ) d
        cross join lateral jsonb_array_elements(d.raw -> 'usageData')
          with ordinality as row (r, place)
      where metersync.uuid_of(row.r ->> 'id') is not null
        and not exists (
          select from ${usageData} u
          where u.id = metersync.uuid_of(row.r ->> 'id')
            and u.deleted_at is null
            and u.document_id <> listed.document_id
            and exists (
              select from ${documents} o
              where o.id = u.document_id
                and o.deleted_at is null
                and (coalesce(o.raw_updated, '-infinity'), o.id)
                  > (coalesce(d.raw_updated, '-infinity'), listed.document_id)
                and exists (
                  select from jsonb_array_elements(metersync.elements(o.raw -> 'usageData')) theirs
                  where metersync.uuid_of(theirs ->> 'id') = u.id
                )
            )
          offset 0
        )
    )`;
};

/**
 * Has the next page with a document write it again although it is equal, if the document has other rows than its
 * record lists: a read that began later had written or deleted them, or another document lists one, too.
 */
async function readAgain(
  tx: Executor,
  listing: readonly WrittenRow[],
  losers: readonly string[],
): Promise<void> {
  await prepared(tx, 'readAgain').execute(sql`
    update ${documents} d set digest = null
    where id = any(${array([...listing.map(({ id }) => id), ...losers], 'uuid')})
      and digest is not null
      and (
        select array_agg(u.id order by u.id)
        from ${usageData} u
        where u.document_id = d.id and u.deleted_at is null
      ) is distinct from (
        select array_agg(distinct listed.id order by listed.id)
        from jsonb_array_elements(metersync.elements(d.raw -> 'usageData')) row
          cross join lateral (select metersync.uuid_of(row ->> 'id') as id) listed
        where listed.id is not null
      )`);
}

const idsOf = (written: readonly WrittenRow[]): SQL =>
  array(
    written.map(({ id }) => id),
    'uuid',
  );

/**
 * Tombstones usage rows that their documents' listings no longer contain. `seenIds` has all ids
 * that the listings contained when they were read, from `readAt` on. A document whose usage was
 * read later does not change, and nothing does if a later walk over the usage of the company was
 * proved. The transaction must have locked the documents, so that the statement
 * sees all rows that others wrote.
 */
export async function retireUsage(
  tx: Executor,
  documentIds: readonly string[],
  seenIds: readonly string[],
  readAt: string,
  companyId: string | null,
): Promise<void> {
  const walk = { companyId, resource: 'usageData', began: readAt } as const;
  const all = array([...documentIds].sort(), 'uuid');
  await retire(tx, {
    of: sql`case when ${isAhead(walk, 'absences')} then ${all} else '{}' end`,
    seen: array(printedUuids(seenIds), 'text'),
    readAt,
  });
}

/**
 * Tombstones usage rows of the documents `of` that are not among `seen`; both are arrays of ids. The
 * rows are deleted as of the read: a row that a later read lists is live, whichever is written first.
 */
async function retire(
  tx: Executor,
  { of, seen, readAt }: { readonly of: SQL; readonly seen: SQL; readonly readAt: string },
): Promise<void> {
  await prepared(tx, 'retireUsage').execute(sql`
    with covered as (
      update ${documents} set usage_read_at = ${readAt}::timestamptz
      where id = any(${of})
        and (usage_read_at is null or usage_read_at <= ${readAt}::timestamptz)
      returning id
    )
    update ${usageData} set
      absent_since = ${readAt}::timestamptz,
      absent_by = 'absent'
    where document_id = any(array(select id from covered))
      and deleted_at is null
      and synced_at < ${readAt}::timestamptz
      and not (id::text = any(${seen}))`);
}

/**
 * Reads the ids of the usage rows that the records of documents list, and whether the warehouse has exactly these
 * rows. Returns undefined unless each record lists its usage.
 */
export async function usageListedByRecords(
  db: Executor,
  documentIds: readonly string[],
): Promise<{ readonly ids: readonly string[]; readonly held: boolean } | undefined> {
  const { rows } = await prepared(db, 'usageListedByRecords').execute<{
    ids: readonly string[] | null;
    lists: boolean | null;
    held: boolean;
  }>(sql`
    select
      listed.ids,
      jsonb_typeof(d.raw -> 'usageData') = 'array' as lists,
      held.ids is not distinct from listed.ids as held
    from ${documents} d
      cross join lateral (
        select array_agg(u.id::text order by u.id::text collate "C") as ids
        from ${usageData} u
        where u.document_id = d.id and u.deleted_at is null
      ) held
      cross join lateral (
        select array_agg(distinct id collate "C" order by id collate "C") as ids
        from jsonb_array_elements(metersync.elements(d.raw -> 'usageData')) row
          cross join lateral (select metersync.canonical_id(row ->> 'id') as id) sent
      ) listed
    where d.id = any(${array(documentIds, 'uuid')})
      and d.deleted_at is null`);
  if (rows.some(({ lists }) => lists !== true)) return undefined;
  return {
    ids: rows.flatMap(({ ids }) => ids ?? []),
    held: rows.every(({ held }) => held),
  };
}

/** Reads the ids of live usage rows, by the id of their document. */
export async function liveUsage(
  db: Executor,
  documentIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await db.execute<{ id: string; ids: string[] }>(sql`
    select asked.id, array_agg(theirs.id::text) as ids
    from unnest(${array([...new Set(documentIds)], 'uuid')}) as asked (id)
      cross join lateral (
        select id from ${usageData} where document_id = asked.id and deleted_at is null offset 0
      ) theirs
    group by asked.id`);
  return new Map(rows.map(({ id, ids }) => [id, ids]));
}
