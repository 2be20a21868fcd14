import { sql } from 'drizzle-orm';
import type { CheckKind, ClosedReason, Severity } from '../../contract/names.ts';
import type { Executor } from '../connect.ts';

export interface IssueFilter {
  readonly companyId?: string | undefined;
  readonly checkName?: string | undefined;
  readonly severity?: Severity | undefined;
  /** Those that were closed, not those that are open. */
  readonly closed?: boolean | undefined;
  /** Without those that somebody acknowledged. */
  readonly unacknowledged?: boolean | undefined;
}

/** One issue: what a check found. */
export interface DataIssue {
  readonly id: number;
  readonly checkName: string;
  readonly severity: Severity;
  readonly companyId: string;
  readonly company: string | null;
  readonly entityType: string;
  readonly entityId: string;
  readonly subject: string;
  /** Values as they were written: amounts keep their digits. */
  readonly evidence: Readonly<Record<string, string | null>>;
  readonly openedAt: string;
  readonly lastSeenAt: string;
  readonly closedAt: string | null;
  /** Null where it was closed before reasons were kept, too. */
  readonly closedReason: ClosedReason | null;
  readonly acknowledgedAt: string | null;
  readonly acknowledgedNote: string | null;
}

/**
 * Issues, the gravest first and the latest first among them; open ones that were acknowledged stand
 * behind the others.
 */
export async function listDataIssues(
  db: Executor,
  { companyId, checkName, severity, closed = false, unacknowledged = false }: IssueFilter,
  limit: number,
): Promise<DataIssue[]> {
  const result = await db.execute<DataIssue & Record<string, unknown>>(sql`
    select i.id::int as id, i.check_name as "checkName", i.severity, i.company_id as "companyId", c.name as company,
      i.entity_type as "entityType", i.entity_id as "entityId", i.subject,
      (select jsonb_object_agg(key, value) from jsonb_each_text(i.evidence)) as evidence,
      i.opened_at as "openedAt", i.last_seen_at as "lastSeenAt", i.closed_at as "closedAt",
      i.closed_reason as "closedReason", i.acknowledged_at as "acknowledgedAt", i.acknowledged_note as "acknowledgedNote"
    from ops.data_issues i left join utility.companies c on c.id = i.company_id
    where (i.closed_at is not null) = ${closed}
      and (${companyId ?? null}::uuid is null or i.company_id = ${companyId ?? null}::uuid)
      and (${checkName ?? null}::text is null or i.check_name = ${checkName ?? null})
      and (${severity ?? null}::text is null or i.severity = ${severity ?? null})
      and not (${unacknowledged} and i.acknowledged_at is not null)
    order by i.closed_at is null and i.acknowledged_at is not null,
      case i.severity when 'error' then 1 when 'warning' then 2 else 3 end, i.opened_at desc, i.id desc
    limit ${limit}`);
  return result.rows;
}

/** Open issues, counted: those that somebody acknowledged apart from the others. */
export interface IssueCounts extends Readonly<Record<Severity, number>> {
  readonly acknowledged: number;
}

export async function countIssues(db: Executor): Promise<IssueCounts> {
  const result = await db.execute<IssueCounts & Record<string, number>>(sql`
    select count(*) filter (where severity = 'error' and acknowledged_at is null)::int as error,
      count(*) filter (where severity = 'warning' and acknowledged_at is null)::int as warning,
      count(*) filter (where severity = 'info' and acknowledged_at is null)::int as info,
      count(acknowledged_at)::int as acknowledged
    from ops.data_issues where closed_at is null`);
  return result.rows[0] as IssueCounts;
}

/** A check, and how many issues of it are open. */
export interface DataIssueCheck {
  readonly checkName: string;
  readonly runWith: CheckKind;
  readonly entityType: string;
  readonly severity: Severity;
  readonly what: string;
  readonly open: number;
  /** Of those that are open. */
  readonly acknowledged: number;
}

export async function readChecks(db: Executor): Promise<DataIssueCheck[]> {
  const result = await db.execute<DataIssueCheck & Record<string, unknown>>(sql`
    select c.check_name as "checkName", c.run_with as "runWith", c.entity_type as "entityType", c.severity, c.what,
      i.open, i.acknowledged
    from ops.data_issue_checks c cross join lateral (
      select count(*)::int as open, count(acknowledged_at)::int as acknowledged
      from ops.data_issues i where i.check_name = c.check_name and i.closed_at is null
    ) i`);
  return result.rows;
}
