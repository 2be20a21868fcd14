import { type SQL, sql } from 'drizzle-orm';
import type { CompanyResource, RunState } from '../contract/names.ts';
import { array, printedUuids } from './arrays.ts';
import type { Executor } from './connect.ts';

/** A run (company and resource null), or one company's or one resource's part of it. */
export interface RunKey {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: string | null;
}

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
}

const is = (key: RunKey): SQL => sql`run_id = ${key.runId}::uuid
  and company_id is not distinct from ${key.companyId}::uuid and resource is not distinct from ${key.resource}`;

export async function startRun(db: Executor, key: RunKey): Promise<void> {
  await db.execute(sql`
    insert into metersync.runs (run_id, company_id, resource, state)
    values (${key.runId}::uuid, ${key.companyId}::uuid, ${key.resource}, 'running')
    on conflict (run_id, company_id, resource) do update set state = 'running', finished_at = null, error = null`);
}

/** Resources of a company that the run has read to their end, however it was. */
export async function finishedResources(db: Executor, runId: string, companyId: string): Promise<string[]> {
  const result = await db.execute<{ resource: string }>(sql`
    select resource from metersync.runs
    where run_id = ${runId}::uuid and company_id = ${companyId}::uuid and finished_at is not null`);
  return result.rows.map((row) => row.resource);
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
      pages = ${c?.pages ?? 0}, passes = ${c?.passes ?? 0}, total_said = ${c?.totalSaid ?? null}::bigint,
      distinct_ids = ${c?.distinctIds ?? null}::bigint, rows_inserted = ${c?.inserted ?? 0},
      rows_changed = ${c?.changed ?? 0}, rows_unchanged = ${c?.unchanged ?? 0},
      rows_tombstoned = ${c?.tombstoned ?? 0}, rows_rejected = ${c?.rejected ?? 0}
    where ${is(key)}`);
}

/** Ends a run: its own row sums up those of its parts, the worst of which names its state. */
export async function concludeRun(db: Executor, runId: string): Promise<RunState> {
  const result = await db.execute<{ state: RunState }>(sql`
    with parts as (
      select * from metersync.runs where run_id = ${runId}::uuid and resource is not null
    )
    update metersync.runs r set finished_at = clock_timestamp(),
      state = (
        select case
          when count(*) filter (where state in ('failed', 'partial', 'running')) > 0
            then case when count(*) filter (where state = 'complete') > 0 then 'partial' else 'failed' end
          when count(*) filter (where state = 'suspect') > 0 then 'suspect' else 'complete' end from parts),
      error = (select string_agg(distinct error, '; ') from parts where error is not null),
      pages = t.pages, rows_inserted = t.inserted, rows_changed = t.changed, rows_unchanged = t.unchanged,
      rows_tombstoned = t.tombstoned, rows_rejected = t.rejected
    from (
      select coalesce(sum(pages), 0) as pages, coalesce(sum(rows_inserted), 0) as inserted,
        coalesce(sum(rows_changed), 0) as changed, coalesce(sum(rows_unchanged), 0) as unchanged,
        coalesce(sum(rows_tombstoned), 0) as tombstoned, coalesce(sum(rows_rejected), 0) as rejected
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

interface PassKey {
  readonly runId: string;
  readonly companyId: string;
  readonly resource: CompanyResource;
  readonly pass: number;
}

/** Notes what a page held, after its rows were written. */
export async function notePage(
  db: Executor,
  key: PassKey,
  page: ManifestPage,
  readAt: string,
): Promise<void> {
  await db.execute(sql`
    insert into metersync.pages (run_id, company_id, resource, pass, asked, current_page, total, has_next,
      ids, read_at)
    values (${key.runId}::uuid, ${key.companyId}::uuid, ${key.resource}, ${key.pass}, ${page.asked},
      ${page.currentPage}, ${page.total}::bigint, ${page.hasNext}, ${array(page.ids, 'text')}, ${readAt}::timestamptz)
    on conflict (run_id, company_id, resource, pass, asked) do update set
      current_page = excluded.current_page, total = excluded.total,
      has_next = excluded.has_next, ids = excluded.ids`);
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
    where run_id = ${key.runId}::uuid and company_id = ${key.companyId}::uuid and resource = ${key.resource}
      and pass = ${key.pass}
    order by asked`);
  const pages = result.rows.map((row) => ({
    asked: row.asked,
    currentPage: row.current_page,
    total: row.total === null ? null : Number(row.total),
    hasNext: row.has_next,
    ids: row.ids,
  }));
  return { pages, beganAt: result.rows[0]?.read_at ?? null };
}

export async function forgetManifest(db: Executor, key: Omit<PassKey, 'pass'>): Promise<void> {
  await db.execute(sql`
    delete from metersync.pages
    where run_id = ${key.runId}::uuid and company_id = ${key.companyId}::uuid and resource = ${key.resource}`);
}

const tables = {
  connections: 'connections',
  meters: 'meters',
  documents: 'documents',
  usageData: 'usage_data',
} as const;

const absent = (
  resource: keyof typeof tables,
  companyId: string,
  seenIds: readonly string[],
  passBeganAt: string,
): SQL => {
  const seen = resource === 'meters' ? seenIds : printedUuids(seenIds);
  const began = sql`${passBeganAt}::timestamptz`;
  return sql`company_id = ${companyId}::uuid and deleted_at is null and first_synced_at < ${began}
    and (synced_at is null or synced_at < ${began}) and not (t.id::text = any(${array(seen, 'text')}))
    and not exists (select from metersync.events e where e.record_id = t.id::text and e.recorded_at >= ${began})`;
};

/** Live rows of a company, and how many of them a pass did not see that nothing else touched since it began. */
export async function countAbsent(
  db: Executor,
  resource: keyof typeof tables,
  companyId: string,
  seenIds: readonly string[],
  passBeganAt: string,
): Promise<{ live: number; absent: number }> {
  const result = await db.execute<{ live: number; absent: number }>(sql`
    select count(*)::int as live, count(*) filter (where ${absent(resource, companyId, seenIds, passBeganAt)})::int as absent
    from ${sql.raw(`utility.${tables[resource]}`)} t where company_id = ${companyId}::uuid and deleted_at is null`);
  return result.rows[0] ?? { live: 0, absent: 0 };
}

/**
 * Tombstones the rows of a company that stable passes did not see, except those that something else touched since
 * the first of them began. Nothing is removed: a later read that sees the record undoes it.
 */
export async function tombstoneAbsent(
  db: Executor,
  resource: keyof typeof tables,
  companyId: string,
  seenIds: readonly string[],
  passBeganAt: string,
): Promise<number> {
  const result = await db.execute(sql`
    update ${sql.raw(`utility.${tables[resource]}`)} t set deleted_at = clock_timestamp(), deleted_reason = 'absent'
    where ${absent(resource, companyId, seenIds, passBeganAt)}`);
  return result.rowCount ?? 0;
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
    select id from utility.meters
    where company_id = ${companyId}::uuid and deleted_at is null and (${after}::text is null or id > ${after})
    order by id limit ${limit}`);
  return result.rows.map((row) => row.id);
}
