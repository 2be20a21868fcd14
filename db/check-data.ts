import { sql } from 'drizzle-orm';
import { type CheckKind, checkKinds } from '../contract/names.ts';
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

/** Opens and closes the issues of companies by what their data shows now. `today` is a date; the warehouse's when not given. */
export async function refreshDataIssues(
  db: Executor,
  companyIds: readonly string[],
  kinds: readonly CheckKind[] = checkKinds,
  today?: string,
): Promise<IssuesRefreshed> {
  const result = await db.execute<{ opened: number; closed: number; still_open: number }>(sql`
    select * from ops.refresh_data_issues(${array(companyIds, 'uuid')}, ${array(kinds, 'text')},
      coalesce(${today ?? null}::date, current_date))`);
  const { opened = 0, closed = 0, still_open = 0 } = result.rows[0] ?? {};
  return { opened, closed, stillOpen: still_open };
}

/** Companies in order, after the given one; also those that the service no longer has, whose issues have to close. */
export async function companiesToCheck(db: Executor, after: string | null, limit: number): Promise<string[]> {
  const result = await db.execute<{ id: string }>(sql`
    select id from utility.companies where ${after}::uuid is null or id > ${after}::uuid order by id limit ${limit}`);
  return result.rows.map((row) => row.id);
}
