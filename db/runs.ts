import { type SQL, sql } from 'drizzle-orm';
import { codeOfReason } from '../contract/failures.ts';
import type { RunKind, RunState } from '../contract/names.ts';
import { clearingQuarantine, type ListedResource, missedBy, tombstonedBy } from './absent.ts';
import { array, arrayLiteral } from './arrays.ts';
import type { Executor } from './connect.ts';
import { runs } from './schema/metersync.ts';
import { forgettingRejected, type Mended } from './write/rejected-records.ts';

/** A run (company and resource null), or one company's or one resource's part of it. */
export interface RunKey {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: string | null;
}

/** What a part of a run read and changed: its certificate, in numbers. */
export interface RunCounts {
  readonly pages: number;
  readonly passes: number;
  readonly totalSaid: number | null;
  readonly distinctIds: number;
  readonly inserted: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly tombstoned: number;
  readonly rejected: number;
  /** Changed or gone though an event should have told of it. */
  readonly missed?: number;
  /** Pages that moved while they were read, over all passes. */
  readonly drift?: number;
  /** Pages that were asked for, over all passes. */
  readonly requests?: number;
}

/** The row of a run or of a part. An index serves `is null`, and not `is not distinct from`: a run has many parts. */
const is = ({ runId, companyId, resource }: RunKey): SQL => {
  const company = companyId === null ? sql`is null` : sql`= ${companyId}::uuid`;
  const part = resource === null ? sql`is null` : sql`= ${resource}`;
  return sql`${runs.runId} = ${runId}::uuid and ${runs.companyId} ${company} and ${runs.resource} ${part}`;
};

/** A run or a part that began: when, by the warehouse's clock, and whether an earlier run read the same to its end. */
export interface Started {
  readonly now: string;
  readonly readBefore: boolean;
}

/** Begins a run or a part, or begins it again. */
export async function startRun(db: Executor, key: RunKey, kind: RunKind = 'full'): Promise<Started> {
  const result = await db.execute<{ now: string; readBefore: boolean }>(sql`
    insert into metersync.runs as r (run_id, company_id, resource, kind, state)
    values (${key.runId}::uuid, ${key.companyId}::uuid, ${key.resource}, ${kind}, 'running')
    on conflict (run_id, company_id, resource) do update set
      state = 'running',
      finished_at = null,
      error = null,
      error_code = null
    returning
      clock_timestamp()::text as now,
      exists (
        select from metersync.runs before
        where before.company_id = r.company_id
          and before.resource = r.resource
          and before.run_id <> r.run_id
          and before.state = 'complete'
        offset 0
      ) as "readBefore"`);
  return result.rows[0] ?? { now: '', readBefore: true };
}

/** Notes parts of a company as read that are none: the service has no endpoint of them. */
export async function notePartsMissing(
  db: Executor,
  { runId, companyId }: Omit<RunKey, 'resource'>,
  resources: readonly string[],
  error: string | null,
): Promise<void> {
  await db.execute(sql`
    insert into metersync.runs (run_id, company_id, resource, state, finished_at, error)
    select ${runId}::uuid, ${companyId}::uuid, resource, 'complete', clock_timestamp(), ${error}
    from unnest(${array(resources, 'text')}) resource
    order by resource
    on conflict (run_id, company_id, resource) do update set
      state = excluded.state,
      finished_at = excluded.finished_at,
      error = excluded.error,
      error_code = null`);
}

/** Resources of a company that the run has read to their end, however it was. */
export async function finishedResources(db: Executor, runId: string, companyId: string): Promise<string[]> {
  const result = await db.execute<{ resource: string }>(sql`
    select resource from metersync.runs
    where run_id = ${runId}::uuid and company_id = ${companyId}::uuid and finished_at is not null`);
  return result.rows.map((row) => row.resource);
}

/** The same for several companies, by their ids. */
export async function finishedOfCompanies(
  db: Executor,
  runId: string,
  companyIds: readonly string[],
): Promise<Map<string, string[]>> {
  const result = await db.execute<{ companyId: string; finished: string[] }>(sql`
    select given.id as "companyId", array_agg(part.resource) as finished
    from unnest(${array(companyIds, 'uuid')}) as given (id)
    cross join lateral (
      select ${runs.resource} as resource
      from ${runs}
      where ${runs.runId} = ${runId}::uuid
        and ${runs.companyId} = given.id
        and ${runs.finishedAt} is not null
      offset 0
    ) part
    group by given.id`);
  return new Map(result.rows.map(({ companyId, finished }) => [companyId, finished]));
}

/** How long the part of another run that has not ended counts as under way: a run that was killed leaves its parts so. */
const elsewhereSeconds = 60;

/** Whether another run began to read a part of the company lately and has not ended it. */
export async function isReadElsewhere(
  db: Executor,
  { runId, companyId }: Pick<RunKey, 'runId'> & { readonly companyId: string },
): Promise<boolean> {
  const result = await db.execute(sql`
    select
    from ${runs}
    where ${runs.companyId} = ${companyId}::uuid
      and ${runs.finishedAt} is null
      and ${runs.runId} <> ${runId}::uuid
      and ${runs.kind} = 'full'
      and ${runs.startedAt} > clock_timestamp() - make_interval(secs => ${elsewhereSeconds})
    limit 1`);
  return (result.rowCount ?? 0) > 0;
}

/** Forgets the part of a company that a run began and left to be begun again. */
export async function forgetRunning(
  db: Executor,
  { runId, companyId }: Pick<RunKey, 'runId'> & { readonly companyId: string },
): Promise<void> {
  await db.execute(sql`
    delete from ${runs}
    where ${runs.runId} = ${runId}::uuid
      and ${runs.companyId} = ${companyId}::uuid
      and ${runs.finishedAt} is null`);
}

/** Forgets the parts of a company in a run, unless the company lives. Returns whether it did. */
export async function forgetPartsOfGone(
  db: Executor,
  { runId, companyId }: Pick<RunKey, 'runId'> & { readonly companyId: string },
): Promise<boolean> {
  const result = await db.execute(sql`
    delete from ${runs}
    where ${runs.runId} = ${runId}::uuid
      and ${runs.companyId} = ${companyId}::uuid
      and not exists (
        select from utility.companies c
        where c.id = ${companyId}::uuid and c.deleted_at is null
      )`);
  return (result.rowCount ?? 0) > 0;
}

/** Adds to what a run or a part says of itself, whatever its state. */
export async function noteRunError(db: Executor, key: RunKey, error: string): Promise<void> {
  await db.execute(sql`
    update metersync.runs set error = concat_ws('; ', error, ${error}::text)
    where ${is(key)}`);
}

export async function finishRun(
  db: Executor,
  key: RunKey,
  state: RunState,
  more: { counts?: RunCounts; error?: string } = {},
): Promise<void> {
  const c = more.counts;
  await db.execute(sql`
    update metersync.runs set state = ${state}, finished_at = clock_timestamp(), error = ${more.error ?? null},
      error_code = ${more.error === undefined ? null : codeOfReason(more.error)}, pages = ${c?.pages ?? 0}, passes = ${c?.passes ?? 0}, total_said = ${c?.totalSaid ?? null}::bigint,
      distinct_ids = ${c?.distinctIds ?? null}::bigint, rows_inserted = ${c?.inserted ?? 0},
      rows_changed = ${c?.changed ?? 0}, rows_unchanged = ${c?.unchanged ?? 0},
      rows_tombstoned = ${c?.tombstoned ?? 0}, rows_rejected = ${c?.rejected ?? 0},
      rows_missed = ${c?.missed ?? 0}, drift = ${c?.drift ?? 0}, requests = ${c?.requests ?? c?.pages ?? 0}
    where ${is(key)}`);
}

/**
 * Notes how far a part of a run is, for those who follow it. Of intervals, ids and total are those of the meter that is
 * being read. Returns the warehouse's clock, if there is such a part.
 */
export async function noteProgress(
  db: Executor,
  key: RunKey,
  counts: Pick<RunCounts, 'pages' | 'totalSaid' | 'distinctIds' | 'inserted' | 'changed' | 'unchanged'>,
): Promise<string | undefined> {
  const { pages, totalSaid, distinctIds, inserted, changed, unchanged } = counts;
  const result = await db.execute<{ now: string }>(sql`
    update metersync.runs set
      pages = ${pages},
      rows_inserted = ${inserted},
      rows_changed = ${changed},
      rows_unchanged = ${unchanged},
      total_said = ${totalSaid}::bigint,
      distinct_ids = ${distinctIds}
    where ${is(key)}
    returning clock_timestamp()::text as now`);
  return result.rows[0]?.now;
}

/** Fails the parts of a run that are still said to be read. */
export async function failRunning(db: Executor, runId: string, error: string): Promise<void> {
  await db.execute(sql`
    update metersync.runs set state = 'failed', finished_at = clock_timestamp(), error = ${error},
      error_code = ${codeOfReason(error)}
    where run_id = ${runId}::uuid and state = 'running' and resource is not null`);
}

/** Ends a run: its own row sums up those of its parts, the worst of which names its state, the most frequent failure its code. */
export async function concludeRun(db: Executor, runId: string): Promise<RunState> {
  await failRunning(db, runId, 'it ended without a word');
  const result = await db.execute<{ state: RunState }>(sql`
    with parts as (
      select * from metersync.runs where run_id = ${runId}::uuid and resource is not null
    )
    update metersync.runs r set finished_at = clock_timestamp(),
      state = (
        select case
          when count(*) filter (where state in ('failed', 'partial')) > 0
            then case when count(*) filter (where state = 'complete') > 0 then 'partial' else 'failed' end
          when count(*) filter (where state = 'suspect') > 0 then 'suspect' else 'complete' end from parts),
      error = (select string_agg(distinct error, '; ') from parts where error is not null),
      error_code = (select error_code from parts where state <> 'complete' and error_code is not null
        group by error_code order by count(*) desc, error_code limit 1),
      pages = t.pages, rows_inserted = t.inserted, rows_changed = t.changed, rows_unchanged = t.unchanged,
      rows_tombstoned = t.tombstoned, rows_rejected = t.rejected, rows_missed = t.missed, drift = t.drift,
      requests = t.requests
    from (
      select coalesce(sum(pages), 0) as pages, coalesce(sum(rows_inserted), 0) as inserted,
        coalesce(sum(rows_changed), 0) as changed, coalesce(sum(rows_unchanged), 0) as unchanged,
        coalesce(sum(rows_tombstoned), 0) as tombstoned, coalesce(sum(rows_rejected), 0) as rejected,
        coalesce(sum(rows_missed), 0) as missed, coalesce(sum(drift), 0) as drift,
        coalesce(sum(requests), 0) as requests
      from parts
    ) t
    where r.run_id = ${runId}::uuid and r.company_id is null and r.resource is null
    returning r.state`);
  return result.rows[0]?.state ?? 'failed';
}

export interface ManifestPage {
  readonly asked: number;
  readonly currentPage: number;
  readonly total: number | null;
  readonly hasNext: boolean;
  readonly ids: readonly (string | null)[];
}

/** A pass over a listing: of a company, or the list of companies itself when there is none. */
interface PassKey {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: ListedResource;
  readonly pass: number;
}

/** Stands for the company in the manifest of the list of companies. */
const noCompany = '00000000-0000-0000-0000-000000000000';
const listingOf = (key: Omit<PassKey, 'pass'>): SQL => sql`run_id = ${key.runId}::uuid
  and company_id = ${key.companyId ?? noCompany}::uuid and resource = ${key.resource}`;

/**
 * Notes what pages held, with their rows or after them, and forgets what was refused before of records that are in order by
 * them; returns the warehouse's clock.
 */
export async function notePages(
  db: Executor,
  key: PassKey,
  pages: readonly (ManifestPage & { readonly readAt: string })[],
  mended: Mended = { resource: key.resource, ids: [], readAt: '-infinity' },
): Promise<string> {
  const column = <T>(of: (page: (typeof pages)[number]) => T): T[] => pages.map(of);
  const result = await db.execute<{ now: string }>(sql`
    with forgotten as (${forgettingRejected(mended)}
    ), noted as (
      insert into metersync.pages (
        run_id, company_id, resource, pass, asked, current_page, total, has_next, ids, read_at
      )
      select
        ${key.runId}::uuid,
        ${key.companyId ?? noCompany}::uuid,
        ${key.resource},
        ${key.pass}::int,
        asked,
        current_page,
        total,
        has_next,
        ids::text[],
        read_at
      from unnest(
        ${array(
          column(({ asked }) => asked),
          'int',
        )},
        ${array(
          column(({ currentPage }) => currentPage),
          'int',
        )},
        ${array(
          column(({ total }) => total),
          'bigint',
        )},
        ${array(
          column(({ hasNext }) => hasNext),
          'boolean',
        )},
        ${array(
          column(({ ids }) => arrayLiteral(ids)),
          'text',
        )},
        ${array(
          column(({ readAt }) => readAt),
          'timestamptz',
        )}
      ) as page (asked, current_page, total, has_next, ids, read_at)
      on conflict (run_id, company_id, resource, pass, asked) do update set
        current_page = excluded.current_page,
        total = excluded.total,
        has_next = excluded.has_next,
        ids = excluded.ids
    )
    select clock_timestamp()::text as now`);
  return result.rows[0]?.now ?? '';
}

/** What the pass has read so far, in the order of its pages, and when it began. */
export async function readManifest(
  db: Executor,
  key: PassKey,
): Promise<{ pages: ManifestPage[]; beganAt: string | null }> {
  const result = await db.execute<{
    asked: number;
    current_page: number;
    total: string | null;
    has_next: boolean;
    ids: (string | null)[];
    read_at: string;
  }>(sql`
    select asked, current_page, total, has_next, ids, read_at::text from metersync.pages
    where ${listingOf(key)} and pass = ${key.pass} order by asked`);
  const pages = result.rows.map((row) => ({
    asked: row.asked,
    currentPage: row.current_page,
    total: row.total === null ? null : Number(row.total),
    hasNext: row.has_next,
    ids: row.ids,
  }));
  return { pages, beganAt: result.rows[0]?.read_at ?? null };
}

/** How a listing of a run ended. */
export interface ListingEnd {
  readonly state: RunState;
  readonly error?: string | undefined;
  readonly counts: Omit<RunCounts, 'tombstoned' | 'missed' | 'drift' | 'requests'>;
  /** How long an event may be on its way before a change that it should have told of counts as missed. */
  readonly graceSeconds: number;
  /** Whether the listing lacks nothing: then what an earlier run left to decide is out of date. */
  readonly lacksNothing: boolean;
  /** Whether rows may have been missed: an earlier run read the listing, and this one changed a row or buried one. */
  readonly mayHaveMissed: boolean;
}

/**
 * Ends the part of a run that read a listing, and forgets the listing's manifest. The numbers that Postgres has are
 * counted here: rows that were tombstoned or missed; pages that were asked for, and those of them that moved, as another
 * page answered, or one with another total.
 */
export async function finishListing(
  db: Executor,
  key: RunKey & { readonly resource: ListedResource },
  { state, error, counts, graceSeconds, lacksNothing, mayHaveMissed }: ListingEnd,
): Promise<void> {
  const { pages, passes, totalSaid, distinctIds, inserted, changed, unchanged, rejected } = counts;
  await db.execute(sql`
    with page as (
      delete from metersync.pages
      where ${listingOf(key)}
      returning pass, asked, current_page, total
    ), judged as (
      select
        current_page <> asked
          or total is distinct from first_value(total) over (partition by pass order by asked) as moved
      from page
    ), cleared as (${clearingQuarantine(key)}
        and ${lacksNothing}
    )
    update metersync.runs set
      state = ${state},
      finished_at = clock_timestamp(),
      error = ${error ?? null},
      error_code = ${error === undefined ? null : codeOfReason(error)},
      pages = ${pages},
      passes = ${passes},
      total_said = ${totalSaid}::bigint,
      distinct_ids = ${distinctIds}::bigint,
      rows_inserted = ${inserted},
      rows_changed = ${changed},
      rows_unchanged = ${unchanged},
      rows_rejected = ${rejected},
      rows_tombstoned = (${tombstonedBy(key.runId, key)}),
      rows_missed = (${mayHaveMissed ? missedBy(key.runId, key, graceSeconds) : sql`0`}),
      drift = (select count(*) from judged where moved),
      requests = (select count(*) from judged)
    where ${is(key)}`);
}

/** Ids of companies to backfill, in order, after the given one. */
export async function companiesAfter(db: Executor, after: string | null, limit: number): Promise<string[]> {
  const result = await db.execute<{ id: string }>(sql`
    select id from utility.companies
    where deleted_at is null and (${after}::uuid is null or id > ${after}::uuid) order by id limit ${limit}`);
  return result.rows.map((row) => row.id);
}

/** Meters of a company that live, in order, after the given one. */
export async function metersAfter(
  db: Executor,
  companyId: string,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const result = await db.execute<{ id: string }>(sql`
    select id
    from (
      -- Those of the company first: for a few in order all meters would be gone through.
      select id from utility.meters
      where company_id = ${companyId}::uuid and deleted_at is null offset 0
    ) m
    where ${after}::text is null or id > ${after}
    order by id limit ${limit}`);
  return result.rows.map((row) => row.id);
}

/** Whether any reading of a meter is held. */
export async function hasReadings(db: Executor, meterId: string): Promise<boolean> {
  const result = await db.execute(sql`select from utility.intervals where meter_id = ${meterId} limit 1`);
  return (result.rowCount ?? 0) > 0;
}
