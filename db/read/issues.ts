import {
  and,
  count,
  desc,
  eq,
  getTableColumns,
  isNotNull,
  isNull,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { checkNames } from '../../contract/check-names.ts';
import { type Severity, severities } from '../../contract/names.ts';
import type { WarehouseHealth } from '../../health/measured.ts';
import { array, isAmong, isBeyond } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { dataIssues, priorityOf, rankOf } from '../schema/ops.ts';
import { companies } from '../schema/utility.ts';
import { openIssues } from '../schema/views.ts';
import { countUpTo } from './bounds.ts';

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
export type DataIssue = Awaited<ReturnType<typeof listDataIssues>>[number];

/** Whether an issue is open, in the words of the indexes that serve lists of open issues. */
const isOpen = ({ id, closedAt }: Readonly<Record<'id' | 'closedAt', SQLWrapper>>) =>
  sql`${closedAt} is null and ${id} > 0`;

type OrderColumns = 'id' | 'severity' | 'mayCost' | 'openedAt' | 'acknowledgedAt';

/** The order of a list of issues, descending; closed issues by severity instead of priority. */
const orderOf = (
  of: Readonly<Record<OrderColumns, SQLWrapper>>,
  { closed }: Pick<IssueFilter, 'closed'>,
) => ({
  priority: closed ? rankOf(of.severity) : priorityOf(of.severity, of.acknowledgedAt),
  cost: sql<string>`${of.mayCost}`,
  openedAt: sql<string>`${of.openedAt}`,
  id: sql<number>`${of.id}`,
});

/** Whether an issue matches severity and acknowledgement: for open issues, by indexed priority. */
function isAsked(
  of: Readonly<Record<OrderColumns, SQLWrapper>>,
  { severity, unacknowledged, closed }: IssueFilter,
): SQL | undefined {
  const priority = priorityOf(of.severity, of.acknowledgedAt);
  if (closed || severity === undefined)
    return and(
      severity && eq(of.severity, severity),
      unacknowledged ? sql`${priority} > 3` : undefined,
    );
  const rank = 3 - severities.indexOf(severity);
  return isAmong(priority, unacknowledged ? [rank + 3] : [rank, rank + 3], 'int');
}

/**
 * Lists issues in the order of an index: unacknowledged first, then the most severe, the most
 * costly, the latest. `after` is the id of the last issue of the previous page.
 */
export async function listDataIssues(
  db: Executor,
  filter: IssueFilter,
  limit: number,
  after?: number,
) {
  const issue = alias(dataIssues, 'issue');
  const { checkName, subject, evidence, companyId, closedAt } = issue;
  const order = orderOf(issue, filter);
  const [last] =
    after === undefined
      ? []
      : await db
          .select(orderOf(dataIssues, filter))
          .from(dataIssues)
          .where(eq(dataIssues.id, after));
  if (after !== undefined && last === undefined) return [];
  const company = db
    .select({ name: companies.name })
    .from(companies)
    .where(eq(companies.id, companyId));
  const isListed = filter.closed ? isNotNull(closedAt) : isOpen(issue);
  const issues = await db
    .select({
      ...getTableColumns(issue),
      companyId: sql<string>`${companyId}`,
      company: sql<string | null>`${company}`,
      /** Values as they were written: amounts keep their digits. */
      evidence: sql<Readonly<Record<string, string | null>>>`(
        select coalesce(jsonb_object_agg(key, value), '{}')
        from jsonb_each_text(${evidence})
      )`,
      /** The evidence as a sentence. */
      sentence: sql<string>`ops.issue_sentence(${checkName}, ${subject}, ${evidence})`,
    })
    .from(issue)
    .where(
      and(
        filter.id === undefined ? isListed : eq(issue.id, filter.id),
        filter.companyId === undefined ? undefined : eq(companyId, filter.companyId),
        filter.checkName === undefined ? undefined : eq(checkName, filter.checkName),
        isAsked(issue, filter),
        isBeyond(Object.values(order), 'descending', last && Object.values(last)),
      ),
    )
    .orderBy(...Object.values(order).map((value) => desc(value)))
    .limit(limit);
  const ids = issues.map(({ id }) => id);
  const named = await db
    .select()
    .from(openIssues)
    .where(isAmong(openIssues.issueId, ids, 'bigint'));
  const names = new Map(named.map(({ issueId, ...of }) => [issueId, of]));
  /** The names of an open issue's subject that people know; null if it is closed. */
  return issues.map((issue) => ({ ...issue, names: names.get(issue.id) ?? null }));
}

/** Counts open issues up to `most`: unacknowledged issues by check, and acknowledged issues. */
export async function countIssuesByCheck(
  db: Executor,
  most: number,
): Promise<Pick<WarehouseHealth, 'issues' | 'acknowledgedIssues'>> {
  const { checkName, severity, acknowledgedAt, closedAt } = dataIssues;
  const priority = priorityOf(severity, acknowledgedAt);
  const isKnown = and(isOpen(dataIssues), sql`${priority} <= 3`);
  const opened = db
    .select({ severity })
    .from(dataIssues)
    .where(and(eq(checkName, sql`checks.name`), isNull(closedAt), isNull(acknowledgedAt)))
    .orderBy(severity)
    .limit(most)
    .as('opened');
  return {
    issues: await db
      .select({ check: sql<string>`checks.name`, severity: opened.severity, open: count() })
      .from(sql`unnest(${array(checkNames, 'text')}) as checks (name)`)
      .crossJoinLateral(opened)
      .groupBy(sql`1`, sql`2`)
      .orderBy(sql`1`, sql`2`),
    acknowledgedIssues: await countUpTo(db, dataIssues, most, isKnown, priority),
  };
}

const aMonday = sql`timestamptz '2001-01-01 00:00:00Z'`;

/**
 * Counts open issues by check and by the week in which they were opened. `week` is the Monday of
 * that week, or null for all weeks before the last `weeks` weeks.
 */
export async function countOpenByWeek(
  db: Executor,
  weeks: number,
): Promise<{ checkName: string; week: string | null; open: number }[]> {
  // All open issues are counted, and `date_bin` takes a third of the time of `date_trunc` for them.
  const counted = db
    .select({
      checkName: dataIssues.checkName,
      monday: sql`date_bin('7 days', ${dataIssues.openedAt}, ${aMonday})`.as('monday'),
      open: count().as('open'),
    })
    .from(dataIssues)
    .where(isNull(dataIssues.closedAt))
    .groupBy(sql`1`, sql`2`)
    .as('counted');
  const { checkName, monday, open } = counted;
  const isCharted = sql`${monday} > now() - ${7 * weeks} * interval '1 day'`;
  return await db
    .select({
      checkName,
      week: sql<string | null>`case
        when ${isCharted} then (${monday} at time zone 'UTC')::date::text
      end`,
      open: sql<number>`sum(${open})::int`,
    })
    .from(counted)
    .groupBy(sql`1`, sql`2`)
    .orderBy(sql`2 nulls first`, sql`1`);
}
