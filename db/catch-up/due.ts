import { type SQL, sql } from 'drizzle-orm';
import { uuid } from '../../contract/ids.ts';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { tableOf } from '../resources.ts';
import { staleRecords } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';
import { serviceParked } from './parking.ts';
import { eventKind, keyOf } from './stale.ts';

/**
 * Returns companies, or meters for intervals, that have something due, at most `limit`. The longest
 * due come first, so that retries of one owner do not delay the others. Returns none while the
 * service is parked. `among` restricts the search to these owners.
 */
export async function dueOwners(
  db: Executor,
  kind: CatchUpKind,
  limit: number,
  among?: readonly string[],
): Promise<string[]> {
  if (among !== undefined) return (await ownersOf(db, firstDueOf(kind, among), limit)).owners;
  const longest = await ownersOf(db, dueLongest(kind), limit);
  if (longest.owners.length >= limit || longest.rows < batches.dueRecords) return longest.owners;
  // A few owners have many due records: look up each waiting owner once.
  return (await ownersOf(db, firstDueOfEach(kind), limit)).owners;
}

/** The owners of rows `(owner, due_at)`, and how many rows those are. */
async function ownersOf(
  db: Executor,
  due: SQL,
  limit: number,
): Promise<{ owners: string[]; rows: number }> {
  const { rows } = await hot(db, 'ownersDue').execute<{ owner: string; rows: number }>(sql`
    select owner, count(*)::int as rows
    from ${due}
    where not ${serviceParked}
    group by owner
    order by min(due_at), owner
    limit ${limit}`);
  const count = rows.reduce((sum, row) => sum + row.rows, 0);
  return { owners: rows.map(({ owner }) => owner), rows: count };
}

const firstDueOf = (kind: CatchUpKind, owners: readonly string[]): SQL => sql`
      unnest(${array(owners, 'text')}) as asked (owner)
      cross join lateral (
        select s.due_at
        from ${staleRecords} s
        where s.queue = ${keyOf(eventKind[kind], sql`asked.owner`)}
          and s.due_at <= clock_timestamp()
        order by s.due_at
        limit 1
      ) first_due`;

const dueLongest = (kind: CatchUpKind): SQL => sql`(
      select s.owner, s.due_at
      from ${staleRecords} s
      where s.kind = ${eventKind[kind]}
        and s.due_at <= clock_timestamp()
      order by s.kind, s.due_at
      limit ${batches.dueRecords}
    ) longest`;

const firstDueOfEach = (kind: CatchUpKind): SQL => sql`(
      with recursive waiting as (
        (
          select s.queue
          from ${staleRecords} s
          order by s.queue
          limit 1
        )
        union all
        select (
          select s.queue
          from ${staleRecords} s
          where s.queue > w.queue
          order by s.queue
          limit 1
        )
        from waiting w
        where w.queue is not null
      )
      select first_due.owner, first_due.due_at
      from waiting w
        cross join lateral (
          select s.kind, s.owner, s.due_at
          from ${staleRecords} s
          where s.queue = w.queue
            and s.due_at <= clock_timestamp()
          order by s.due_at
          limit 1
        ) first_due
      where first_due.kind = ${eventKind[kind]}
    ) each_owner`;

/**
 * Returns the warehouse's clock: reads of all workers are ordered by it. Runs a step of a statement
 * before, if one is given.
 */
export async function warehouseNow(db: Executor, step?: SQL): Promise<string> {
  const result = await hot(db, 'warehouseNow').execute<{ now: string }>(sql`
    ${step === undefined ? sql`` : sql`with ${step}`}
    select clock_timestamp()::text as now`);
  return firstOf(result.rows).now;
}

/** The warehouse's clock as a table `clock (now)`, before anything is read. */
const clock = sql.raw('(select clock_timestamp()::text as now) clock');

/** The first row of a statement that reads the clock: there is one even where nothing is due. */
export function firstOf<Row>([first]: readonly Row[]): Row {
  if (first === undefined) throw new Error('a clock without a time');
  return first;
}

/** A record to look for: its id, and when it was created as text that sorts as times do. */
export interface WantedRecord {
  readonly id: string;
  readonly key: string | null;
}

const comparable = (time: SQL): SQL<string> =>
  sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')`;

/** Reads a company's due records, longest due first, and the warehouse's clock. */
export async function dueRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  limit: number,
): Promise<{ readAt: string; due: WantedRecord[] }> {
  const { rows } = await hot(db, 'dueRecords').execute<{
    now: string;
    id: string | null;
    key: string | null;
  }>(sql`
    select clock.now, due.record_id as id, ${comparable(sql`existing.created`)} as key
    from ${clock}
      left join lateral (
        select record_id, due_at
        from ${staleRecords}
        where queue = ${keyOf(eventKind[kind], companyId)}
          and due_at <= clock_timestamp()
        order by due_at, record_id
        limit ${limit}
      ) due on true
      left join lateral (
        select created
        from ${tableOf(kind)}
        where id = due.record_id::uuid
        offset 0
      ) existing on true
    order by due.due_at, due.record_id`);
  const due = rows.flatMap(({ id, key }) => (id === null ? [] : [{ id, key }]));
  return { readAt: firstOf(rows).now, due };
}

/** Reads the ids of live usage rows, by the id of their document. */
export async function liveUsage(
  db: Executor,
  documentIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const result = await hot(db, 'liveUsage').execute<{ document_id: string; ids: string[] }>(sql`
    select document_id, array_agg(id::text) as ids
    from (
        select distinct unnest(${array(documentIds, 'uuid')}) as document_id
      ) asked
      cross join lateral (
        select id
        from ${usageData} u
        where u.document_id = asked.document_id
          and u.deleted_at is null
        offset 0
      ) theirs
    group by document_id`);
  return new Map(result.rows.map(({ document_id, ids }) => [document_id, ids]));
}

/** Reads when records were created, by their ids; leaves out those without a known time. */
export async function createdTimes(
  db: Executor,
  listing: 'documents' | 'usageData',
  ids: readonly string[],
): Promise<Map<string, string>> {
  const table = listing === 'documents' ? documents : usageData;
  const uuids = ids.filter((id) => uuid.test(id));
  const { rows } = await db.execute<{ id: string; key: string }>(sql`
    select id, ${comparable(sql`created`)} as key
    from ${table}
    where id = any(${array(uuids, 'uuid')})
      and created is not null`);
  return new Map(rows.map(({ id, key }) => [id, key]));
}

/**
 * Reads the usage rows of documents. Undefined unless each document's record lists its usage and
 * the warehouse holds exactly these rows.
 */
export async function usageListedByRecords(
  db: Executor,
  documentIds: readonly string[],
): Promise<WantedRecord[] | undefined> {
  const sorted = (id: SQL): SQL =>
    sql`array_agg(distinct ${id} collate "C" order by ${id} collate "C")`;
  const { rows } = await hot(db, 'usageListedByRecords').execute<{
    id: string | null;
    key: string | null;
    complete: boolean | null;
  }>(sql`
    with asked as (
      select
        d.id,
        jsonb_typeof(d.raw -> 'usageData') = 'array' and held.ids is not distinct from listed.ids
          as complete
      from ${documents} d
        cross join lateral (
          select ${sorted(sql`u.id::text`)} as ids
          from ${usageData} u
          where u.document_id = d.id
            and u.deleted_at is null
        ) held
        cross join lateral (
          select ${sorted(sql`metersync.canonical_id(row ->> 'id')`)} as ids
          from jsonb_array_elements(metersync.elements(d.raw -> 'usageData')) row
        ) listed
      where d.id = any(${array(documentIds, 'uuid')})
        and d.deleted_at is null
    )
    select theirs.id, ${comparable(sql`theirs.created`)} as key, asked.complete
    from asked
      left join lateral (
        select id, created
        from ${usageData}
        where document_id = asked.id
          and deleted_at is null
        offset 0
      ) theirs on true`);
  if (rows.some(({ complete }) => !complete)) return undefined;
  return rows.flatMap(({ id, key }) => (id === null ? [] : [{ id, key }]));
}
