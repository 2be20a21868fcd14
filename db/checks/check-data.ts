import { and, eq, isNull, sql } from 'drizzle-orm';
import { type CheckKind, type CheckName, checkKinds } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { dataIssues } from '../schema/ops.ts';

/** What becomes of the issues of some companies: see ops.refresh_data_issues. */
export interface IssuesRefreshed {
  readonly opened: number;
  readonly closed: number;
  /** Those that were open before and are still. */
  readonly stillOpen: number;
}

export function sumOfIssues(one: IssuesRefreshed, other: IssuesRefreshed): IssuesRefreshed {
  return {
    opened: one.opened + other.opened,
    closed: one.closed + other.closed,
    stillOpen: one.stillOpen + other.stillOpen,
  };
}

export interface Checking {
  /** All when not given. */
  readonly kinds?: readonly CheckKind[];
  /** Checks that are left out: what is open of them is closed, whatever company it is of. */
  readonly off?: readonly CheckName[];
  /** A date; the warehouse's when not given. */
  readonly today?: string;
}

/** A company, and the checks that are to be made of it. */
export interface CompanyToCheck {
  readonly id: string;
  readonly kinds: readonly CheckKind[];
}

/**
 * Opens and closes the issues of companies by what their data shows now. Each is held until the
 * transaction ends: one a call keeps nobody waiting for long.
 */
export async function refreshDataIssues(
  db: Executor,
  companyIds: readonly string[],
  { kinds = checkKinds, off = [], today }: Checking = {},
): Promise<IssuesRefreshed> {
  const result = await db.execute<{ opened: number; closed: number; still_open: number }>(sql`
    select *
    from ops.refresh_data_issues(
      ${array(companyIds, 'uuid')},
      ${array(kinds, 'text')},
      coalesce(${today ?? null}::date, current_date),
      ${array(off, 'text')}
    )`);
  const { opened = 0, closed = 0, still_open = 0 } = result.rows[0] ?? {};
  return { opened, closed, stillOpen: still_open };
}

/**
 * Notes that somebody knows of an open issue, with what they say to it, or takes that back. It
 * stays open; found again after it was closed, it is a new issue, of which nobody knows yet. False
 * when no issue of this id is open.
 */
export async function acknowledgeIssue(
  db: Executor,
  id: number,
  {
    note,
    undo = false,
  }: { readonly note?: string | undefined; readonly undo?: boolean | undefined },
): Promise<boolean> {
  const { acknowledgedAt, acknowledgedNote } = dataIssues;
  const known = {
    acknowledgedAt: sql`coalesce(${acknowledgedAt}, clock_timestamp())`,
    acknowledgedNote: sql`coalesce(${note ?? null}, ${acknowledgedNote})`,
  };
  const { rowCount } = await db
    .update(dataIssues)
    .set(undo ? { acknowledgedAt: null, acknowledgedNote: null } : known)
    .where(and(eq(dataIssues.id, id), isNull(dataIssues.closedAt)));
  return rowCount === 1;
}
