import { type SQL, sql } from 'drizzle-orm';
import { type CheckKind, type CheckName, checkKinds } from '../contract/names.ts';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';

/** What becomes of the issues of some companies: see ops.refresh_data_issues. */
export interface IssuesRefreshed {
  readonly opened: number;
  readonly closed: number;
  /** Those that were open before and are still. */
  readonly stillOpen: number;
}

/** Companies that one statement looks at: views answer for one in milliseconds, so a statement takes seconds. */
export const companiesTogether = 20;

export interface Checking {
  /** All when not given. */
  readonly kinds?: readonly CheckKind[];
  /** Checks that are left out: what is open of them is closed, whatever company it is of. */
  readonly off?: readonly CheckName[];
  /** A date; the warehouse's when not given. */
  readonly today?: string;
}

/** Opens and closes the issues of companies by what their data shows now. */
export async function refreshDataIssues(
  db: Executor,
  companyIds: readonly string[],
  { kinds = checkKinds, off = [], today }: Checking = {},
): Promise<IssuesRefreshed> {
  const result = await db.execute<{ opened: number; closed: number; still_open: number }>(sql`
    select * from ops.refresh_data_issues(${array(companyIds, 'uuid')}, ${array(kinds, 'text')},
      coalesce(${today ?? null}::date, current_date), ${array(off, 'text')})`);
  const { opened = 0, closed = 0, still_open = 0 } = result.rows[0] ?? {};
  return { opened, closed, stillOpen: still_open };
}

/**
 * Notes that somebody knows of an open issue, with what they say to it, or takes that back. It stays open; found again
 * after it was closed, it is a new issue, of which nobody knows yet. False when no issue of this id is open.
 */
export async function acknowledgeIssue(
  db: Executor,
  id: number,
  { note, undo = false }: { readonly note?: string | undefined; readonly undo?: boolean | undefined },
): Promise<boolean> {
  const known = undo
    ? sql`acknowledged_at = null, acknowledged_note = null`
    : sql`acknowledged_at = coalesce(acknowledged_at, clock_timestamp()),
        acknowledged_note = coalesce(${note ?? null}, acknowledged_note)`;
  const { rowCount } = await db.execute(
    sql`update ops.data_issues set ${known} where id = ${id} and closed_at is null`,
  );
  return rowCount === 1;
}

/** Companies in order, after the given one; also those that the service no longer has, whose issues have to close. */
export async function companiesToCheck(
  db: Executor,
  after: string | null,
  limit: number,
  some: SQL = sql`true`,
): Promise<string[]> {
  const result = await db.execute<{ id: string }>(sql`
    select id from utility.companies
    where (${after}::uuid is null or id > ${after}::uuid) and ${some} order by id limit ${limit}`);
  return result.rows.map((row) => row.id);
}

/**
 * Companies that a reconcile changed something for, or an event that was applied since the reconcile before began.
 */
export const changedFor = (reconcileId: string): SQL => sql`id = any(array(
  with whole as (
    select started_at from metersync.runs
    where run_id = ${reconcileId}::uuid and company_id is null and resource is null
  ), since as (
    select coalesce((
      select max(r.started_at) from metersync.runs r
      where r.kind = 'reconcile' and r.company_id is null and r.resource is null and r.started_at < whole.started_at
    ), whole.started_at - interval '1 day') as at from whole
  )
  select company_id from metersync.runs
  where run_id = ${reconcileId}::uuid and company_id is not null and rows_inserted + rows_changed + rows_tombstoned > 0
  union
  -- Both bounds: of one alone the planner thinks that a third of the log is within it.
  select s.owner::uuid
  from (
    select kind, owner, outcome from metersync.settlements
    where settled_at between (select at from since) and 'infinity' offset 0
  ) s
  where s.kind in ('connection', 'document') and s.outcome in ('applied', 'superseded')
  union
  select e.company_id from metersync.journal e
  where e.received_at between (select at - interval '1 day' from since) and 'infinity'
    and e.recorded_at >= (select at from since) and e.arrived_as = 'applied'
))`;
