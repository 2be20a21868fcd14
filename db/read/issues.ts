import { and, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { checkNames } from '../../contract/check-names.ts';
import type { Severity } from '../../contract/names.ts';
import type { WarehouseHealth } from '../../health/measured.ts';
import { array, isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { dataIssues } from '../schema/ops.ts';
import { companies } from '../schema/utility.ts';
import { countOf } from './counted.ts';
import { openIssues } from './views.ts';

export interface IssueFilter {
  /** This issue, open or closed. */
  readonly id?: number | undefined;
  readonly companyId?: string | undefined;
  readonly checkName?: string | undefined;
  readonly severity?: Severity | undefined;
  /** Closed issues instead of open ones. */
  readonly closed?: boolean | undefined;
  /** Only issues that nobody acknowledged. */
  readonly unacknowledged?: boolean | undefined;
}

/** An issue that a check found. */
export interface DataIssue extends Omit<typeof dataIssues.$inferSelect, 'companyId' | 'evidence'> {
  readonly companyId: string;
  readonly company: string | null;
  /** The evidence as a sentence. */
  readonly sentence: string;
  /** Values as they were written: amounts keep their digits. */
  readonly evidence: Readonly<Record<string, string | null>>;
}

const issue = alias(dataIssues, 'issue');

/** The place of a severity: the gravest is the first. */
export const gravity = (severity: SQL): SQL =>
  sql`case ${severity} when 'error' then 1 when 'warning' then 2 else 3 end`;

/** The order of a list of issues: each column ascending. */
const orderOf = (
  of: typeof issue,
): SQL => sql`${of.closedAt} is null and ${of.acknowledgedAt} is not null,
      ${gravity(sql`${of.severity}`)},
      -extract(epoch from ${of.openedAt}),
      -${of.id}`;

const before = alias(dataIssues, 'before');
const next = alias(dataIssues, 'next');
const acknowledged = alias(dataIssues, 'acknowledged');

/**
 * Lists issues, the gravest first, then the latest; acknowledged open ones come after all others.
 * `after` is the last issue of the previous page.
 */
export async function listDataIssues(
  db: Executor,
  filter: IssueFilter,
  limit: number,
  after?: number,
): Promise<DataIssue[]> {
  const later =
    after === undefined
      ? sql`true`
      : sql`(
        ${orderOf(issue)}
      ) > (
        select
          ${orderOf(before as unknown as typeof issue)}
        from ${dataIssues} ${before}
        where ${before.id} = ${after}
      )`;
  const result = await db.execute<DataIssue & Record<string, unknown>>(sql`
    select
      ${issue.id}::int as id,
      ${issue.checkName} as "checkName",
      ${issue.severity},
      ${issue.companyId} as "companyId",
      (
        select ${companies.name}
        from ${companies}
        where ${companies.id} = ${issue.companyId}
      ) as company,
      ${issue.entityType} as "entityType",
      ${issue.entityId} as "entityId",
      ${issue.subject},
      (
        select jsonb_object_agg(key, value)
        from jsonb_each_text(${issue.evidence})
      ) as evidence,
      ops.issue_sentence(${issue.checkName}, ${issue.subject}, ${issue.evidence}) as sentence,
      ${issue.openedAt} as "openedAt",
      ${issue.lastSeenAt} as "lastSeenAt",
      ${issue.closedAt} as "closedAt",
      ${issue.closedReason} as "closedReason",
      ${issue.acknowledgedAt} as "acknowledgedAt",
      ${issue.acknowledgedNote} as "acknowledgedNote"
    from ${amongThem(filter, limit, after)}
    where ${matching(filter)}
      and ${later}
    order by
      ${orderOf(issue)}
    limit ${limit}`);
  return result.rows;
}

/**
 * The source of a list: the first open issues of each check and severity, as an index has them, and
 * all that somebody acknowledged. Those of a company, and closed ones, are sorted.
 */
function amongThem(
  { id, companyId, checkName, severity, closed }: IssueFilter,
  limit: number,
  after: number | undefined,
): SQL {
  // By the company alone: with another condition the planner may add all of an index of open issues.
  if (companyId !== undefined)
    return sql`(
      select *
      from ${dataIssues}
      where ${dataIssues.companyId} = ${companyId}::uuid
      offset 0
    ) ${issue}`;
  if (id !== undefined || closed) return sql`${dataIssues} ${issue}`;
  const isNew = (of: typeof next): SQL | undefined =>
    and(isNull(of.closedAt), isNull(of.acknowledgedAt));
  const chosen = and(
    checkName === undefined ? undefined : sql`opened.check_name = ${checkName}`,
    severity === undefined ? undefined : sql`opened.severity = ${severity}`,
  );
  return sql`(
      with recursive opened as (
        (
          select
            ${next.checkName},
            ${next.severity}
          from ${dataIssues} ${next}
          where ${isNew(next)}
          order by ${next.checkName}, ${next.severity}
          limit 1
        )
        union all
        select following.*
        from opened
          cross join lateral (
            select
              ${next.checkName},
              ${next.severity}
            from ${dataIssues} ${next}
            where ${isNew(next)}
              and (${next.checkName}, ${next.severity}) > (opened.check_name, opened.severity)
            order by ${next.checkName}, ${next.severity}
            limit 1
          ) following
      )
      select first.*
      from opened
        cross join lateral (${after === undefined ? sql`select 'infinity'::timestamptz as opened_at` : openedBefore(after)}
        ) page
        cross join lateral (
          select *
          from ${dataIssues} ${next}
          where ${isNew(next)}
            and ${next.checkName} = opened.check_name
            and ${next.severity} = opened.severity
            and (${next.openedAt}, ${next.id}) < (page.opened_at, ${after ?? 0}::bigint)
          order by ${next.openedAt} desc, ${next.id} desc
          limit ${limit}
        ) first
      where ${chosen ?? sql`true`}
      union all
      (
        select *
        from ${dataIssues} ${acknowledged}
        where ${and(isNull(acknowledged.closedAt), isNotNull(acknowledged.acknowledgedAt))}
        offset 0
      )
    ) ${issue}`;
}

/** Until when the next issues of an opened severity were opened, after the last one of a page. */
const openedBefore = (after: number): SQL => sql`
          select
            case
              when ${before.closedAt} is null
                and ${before.acknowledgedAt} is not null then '-infinity'
              when ${gravity(sql`opened.severity`)} > ${gravity(sql`${before.severity}`)}
                then 'infinity'
              when ${gravity(sql`opened.severity`)} = ${gravity(sql`${before.severity}`)}
                then ${before.openedAt}
              else '-infinity'
            end as opened_at
          from ${dataIssues} ${before}
          where ${before.id} = ${after}`;

/** Whether an issue matches; the statement leaves out absent conditions. */
function matching({
  id,
  companyId,
  checkName,
  severity,
  closed = false,
  unacknowledged = false,
}: IssueFilter): SQL | undefined {
  return and(
    id === undefined
      ? sql`${issue.closedAt} is ${closed ? sql`not null` : sql`null`}`
      : sql`${issue.id} = ${id}`,
    companyId === undefined ? undefined : sql`${issue.companyId} = ${companyId}::uuid`,
    checkName === undefined ? undefined : sql`${issue.checkName} = ${checkName}`,
    severity === undefined ? undefined : sql`${issue.severity} = ${severity}`,
    unacknowledged ? sql`${issue.acknowledgedAt} is null` : undefined,
  );
}

/** Names of an open issue's subject that people know; null if there is none. */
export type IssueNames = Omit<typeof openIssues.$inferSelect, 'issueId'>;

/** Reads the names of open issues, by their ids. */
export async function namesOfIssues(
  db: Executor,
  ids: readonly number[],
): Promise<ReadonlyMap<number, IssueNames>> {
  const rows = await db
    .select()
    .from(openIssues)
    .where(isAmong(openIssues.issueId, ids, 'bigint'));
  return new Map(rows.map(({ issueId, ...names }) => [issueId, names]));
}

/** Counts open issues of each check, and acknowledged ones, up to `most` of each. */
export async function countIssuesByCheck(
  db: Executor,
  most: number,
): Promise<Pick<WarehouseHealth, 'issues' | 'acknowledgedIssues'>> {
  const { rows } = await db.execute<{ check: string; severity: Severity; open: number }>(sql`
    select
      checks.name as check,
      opened.severity,
      count(*)::int as open
    from unnest(${array(checkNames, 'text')}) as checks (name)
      cross join lateral (
        select ${issue.severity}
        from ${dataIssues} ${issue}
        where ${issue.checkName} = checks.name
          and ${issue.closedAt} is null
          and ${issue.acknowledgedAt} is null
        order by ${issue.severity}
        limit ${most}
      ) opened
    group by 1, 2
    order by 1, 2`);
  const known = await db.execute<{ acknowledged: number }>(sql`
    select ${countOf(
      sql`from ${dataIssues} ${issue}
          where ${issue.closedAt} is null
            and ${issue.acknowledgedAt} is not null
          order by ${issue.id}`,
      most,
    )} as acknowledged`);
  return { issues: rows, acknowledgedIssues: known.rows[0]?.acknowledged ?? 0 };
}

/** Open issues by check and by the week in which they were opened; `week` is its Monday, null if it is earlier. */
export async function countOpenByWeek(
  db: Executor,
  weeks: number,
): Promise<{ checkName: string; week: string | null; open: number }[]> {
  const monday = sql`date_trunc('week', ${dataIssues.openedAt} at time zone 'UTC')::date`;
  const first = sql`date_trunc('week', now() at time zone 'UTC')::date - ${7 * (weeks - 1)}::int`;
  const week = sql<string | null>`case when ${monday} >= ${first} then ${monday}::text end`;
  return await db
    .select({ checkName: dataIssues.checkName, week, open: sql<number>`count(*)::int` })
    .from(dataIssues)
    .where(isNull(dataIssues.closedAt))
    .groupBy(sql`1`, sql`2`)
    .orderBy(sql`2 nulls first`, sql`1`);
}
