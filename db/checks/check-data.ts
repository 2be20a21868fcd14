import { and, eq, isNull, sql } from 'drizzle-orm';
import type { CheckName } from '../../contract/check-names.ts';
import { type CheckKind, checkKinds } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { fieldCatalogue } from '../schema/metersync.ts';
import { dataIssues } from '../schema/ops.ts';
import { runs } from '../schema/reads.ts';

/** How a check changed the issues of some companies: see ops.refresh_data_issues. */
interface IssuesRefreshed {
  readonly opened: number;
  readonly closed: number;
  /** Issues that were open before and still are. */
  readonly stillOpen: number;
}

export function sumOfIssues(a: IssuesRefreshed, b: IssuesRefreshed): IssuesRefreshed {
  return {
    opened: a.opened + b.opened,
    closed: a.closed + b.closed,
    stillOpen: a.stillOpen + b.stillOpen,
  };
}

interface Checking {
  /** All kinds if absent. */
  readonly kinds?: readonly CheckKind[];
  /** Checks to leave out. Their open issues are closed, for every company. */
  readonly off?: readonly CheckName[];
  /** A date; the warehouse's current date if absent. */
  readonly today?: string;
}

/** A company and the kinds of checks to run on it. */
export interface CompanyToCheck {
  readonly id: string;
  readonly kinds: readonly CheckKind[];
}

/**
 * Opens and closes the issues of companies according to their current data. Each company is locked
 * until the transaction ends: pass one company per call to keep the lock short.
 */
export async function refreshDataIssues(
  db: Executor,
  companyIds: readonly string[],
  { kinds = checkKinds, off = [], today }: Checking = {},
): Promise<IssuesRefreshed> {
  const [refreshed] = await db
    .select({
      opened: sql<number>`opened`,
      closed: sql<number>`closed`,
      stillOpen: sql<number>`still_open`,
    })
    .from(
      sql`ops.refresh_data_issues(
        ${array(companyIds, 'uuid')},
        ${array(kinds, 'text')},
        coalesce(${today ?? null}::date, current_date),
        ${array(off, 'text')}
      )`,
    );
  return refreshed ?? { opened: 0, closed: 0, stillOpen: 0 };
}

/** How long a field counts as new. */
const newDays = 30;

/**
 * Opens an issue for each field that the service began to send within a month, after a backfill of
 * all companies, and closes the issues of other fields.
 */
export async function refreshFieldIssues(
  db: Executor,
  off: readonly CheckName[],
): Promise<IssuesRefreshed> {
  const { rows } = await db.execute<{ opened: number; closed: number }>(sql`
    with fields as (
      select resource, path, min(first_seen_at) as since
      from ${fieldCatalogue}
      group by resource, path
    ), found as (
      select f.resource || f.path as field, to_jsonb(f) as evidence
      from fields f
        join fields record on record.resource = f.resource and record.path = ''
      where f.since > now() - make_interval(days => ${newDays})
        and 'new_field' <> all (${array(off, 'text')})
        and exists (
          select
          from ${runs} r
          where r.company_id is null
            and r.resource is null
            and r.kind = 'full'
            and r.state = 'complete'
            and r.finished_at between record.since and f.since
        )
    ), opened as (
      insert into ${dataIssues} (check_name, severity, entity_type, entity_id, evidence)
      select 'new_field', 'info', 'field', field, evidence
      from found
      on conflict do nothing
      returning id
    ), closed as (
      update ${dataIssues}
      set closed_at = clock_timestamp(), closed_reason = 'evidence_gone'
      where check_name = 'new_field'
        and closed_at is null
        and entity_id not in (select field from found)
      returning id
    )
    select
      (select count(*)::int from opened) as opened,
      (select count(*)::int from closed) as closed`);
  return { stillOpen: 0, opened: 0, closed: 0, ...rows[0] };
}

/**
 * Acknowledges an open issue with a note, or withdraws this; it stays open. An issue that is found
 * again after it was closed is a new issue. Returns false if no open issue has this id.
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
  const acknowledged = {
    acknowledgedAt: sql`coalesce(${acknowledgedAt}, clock_timestamp())`,
    acknowledgedNote: sql`coalesce(${note ?? null}, ${acknowledgedNote})`,
  };
  const { rowCount } = await db
    .update(dataIssues)
    .set(undo ? { acknowledgedAt: null, acknowledgedNote: null } : acknowledged)
    .where(and(eq(dataIssues.id, id), isNull(dataIssues.closedAt)));
  return rowCount === 1;
}
