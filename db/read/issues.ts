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
import { array, isAmong, literal, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { dataIssues } from '../schema/ops.ts';
import { companies } from '../schema/utility.ts';
import { countUpTo } from './counted.ts';
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
export type DataIssue = Awaited<ReturnType<typeof listDataIssues>>[number];

/** The place of a severity: the gravest is the first. */
const gravity = (severity: SQLWrapper): SQL =>
  sql`case ${severity} when 'error' then 1 when 'warning' then 2 else 3 end`;

type OrderColumns = 'id' | 'severity' | 'mayCost' | 'openedAt' | 'closedAt' | 'acknowledgedAt';

/** The order of a list of issues: each value ascending. */
const orderOf = (of: Readonly<Record<OrderColumns, SQLWrapper>>) => ({
  isKnown: sql`${of.closedAt} is null and ${of.acknowledgedAt} is not null`,
  gravity: gravity(of.severity),
  cost: sql`-${of.mayCost}`,
  age: sql`-extract(epoch from ${of.openedAt})`,
  id: sql`-${of.id}`,
});

/**
 * Lists issues, the gravest first, of these the gaps that may cost most, then the latest. Acknowledged open ones
 * come after all others.
 * `after` is the last issue of the previous page.
 */
export async function listDataIssues(
  db: Executor,
  filter: IssueFilter,
  limit: number,
  after?: number,
) {
  const issue = alias(dataIssues, 'issue');
  const { checkName, severity, subject, evidence, companyId, closedAt } = issue;
  const order = Object.values(orderOf(issue));
  const before = alias(dataIssues, 'before');
  const last = db
    .select(orderOf(before))
    .from(before)
    .where(eq(before.id, after ?? 0));
  const company = db
    .select({ name: companies.name })
    .from(companies)
    .where(eq(companies.id, companyId));
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
    .from(await sourceOf(db, filter, limit, after))
    .where(
      and(
        filter.id !== undefined
          ? undefined
          : filter.closed
            ? isNotNull(closedAt)
            : isNull(closedAt),
        filter.checkName === undefined ? undefined : eq(checkName, filter.checkName),
        filter.severity === undefined ? undefined : eq(severity, filter.severity),
        filter.unacknowledged ? isNull(issue.acknowledgedAt) : undefined,
        after === undefined ? undefined : sql`(${sql.join(order, sql`, `)}) > ${last}`,
      ),
    )
    .orderBy(...order)
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

/**
 * The issues that a list is sorted from: one, those of a company, closed ones, or the first open ones. They are
 * read by one index, open ones each by its id, before other conditions apply.
 */
async function sourceOf(
  db: Executor,
  filter: IssueFilter,
  limit: number,
  after: number | undefined,
) {
  const those = (which: SQL, name: 'issue' | 'one' = 'issue') =>
    db.select().from(dataIssues).where(which).offset(literal(0)).as(name);
  if (filter.id !== undefined) return those(eq(dataIssues.id, filter.id));
  if (filter.companyId !== undefined) return those(eq(dataIssues.companyId, filter.companyId));
  if (filter.closed) return those(isNotNull(dataIssues.closedAt));
  const opened = unnested('opened', await firstOpen(db, filter, limit, after), [
    ['issue', 'bigint', (id) => id],
  ]);
  const one = those(eq(dataIssues.id, sql`opened.issue`), 'one');
  return db
    .select(getTableColumns(alias(dataIssues, 'one')))
    .from(opened)
    .crossJoinLateral(one)
    .as('issue');
}

const isNew = and(isNull(dataIssues.closedAt), isNull(dataIssues.acknowledgedAt));
const isKnown = and(isNull(dataIssues.closedAt), isNotNull(dataIssues.acknowledgedAt));

/** Reads which checks and severities new issues have: each is the next one of an index. */
async function readLists(db: Executor, which: SQL | undefined) {
  const { checkName, severity } = dataIssues;
  const lists: { checkName: string; severity: Severity }[] = [];
  for (;;) {
    const last = lists.at(-1);
    const later = last && sql`(${checkName}, ${severity}) > (${last.checkName}, ${last.severity})`;
    const [next] = await db
      .select({ checkName, severity })
      .from(dataIssues)
      .where(and(isNew, which, later))
      .orderBy(checkName, severity)
      .limit(1);
    if (next === undefined) return lists;
    lists.push(next);
  }
}

/**
 * Reads the ids of open issues among which a page is: the first of each check and severity, as an index has
 * them, and all that somebody acknowledged.
 */
async function firstOpen(
  db: Executor,
  { checkName, severity }: IssueFilter,
  limit: number,
  after: number | undefined,
): Promise<number[]> {
  const { id, mayCost, openedAt } = dataIssues;
  const [last] = after === undefined ? [] : await db.select().from(dataIssues).where(eq(id, after));
  const known = await db.select({ id }).from(dataIssues).where(isKnown);
  if (last?.acknowledgedAt && last.closedAt === null) return known.map((issue) => issue.id);
  const lists = await readLists(
    db,
    checkName === undefined ? undefined : eq(dataIssues.checkName, checkName),
  );
  const rank = (of: Severity) => severities.indexOf(of);
  const left = lists
    .filter((list) => severity === undefined || list.severity === severity)
    // A page goes on at the severity of the last issue; graver ones are over.
    .filter((list) => last === undefined || rank(list.severity) >= rank(last.severity))
    .map((list) => ({ ...list, last: list.severity === last?.severity ? last : undefined }));
  const opened = unnested('opened', left, [
    ['check_name', 'text', (list) => list.checkName],
    ['severity', 'text', (list) => list.severity],
    ['may_cost', 'numeric', (list) => list.last?.mayCost ?? 'infinity'],
    ['opened_at', 'timestamptz', (list) => list.last?.openedAt ?? 'infinity'],
    ['id', 'bigint', (list) => list.last?.id ?? 0],
  ]);
  const next = db
    .select({ id })
    .from(dataIssues)
    .where(
      and(
        isNew,
        eq(dataIssues.checkName, sql`opened.check_name`),
        eq(dataIssues.severity, sql`opened.severity`),
        sql`(${mayCost}, ${openedAt}, ${id}) < (opened.may_cost, opened.opened_at, opened.id)`,
      ),
    )
    .orderBy(desc(mayCost), desc(openedAt), desc(id))
    .limit(literal(limit))
    .as('next');
  const fresh = await db.select({ id: next.id }).from(opened).crossJoinLateral(next);
  return [...fresh, ...known].map((issue) => issue.id);
}

/** Counts open issues of each check, and acknowledged ones, up to `most` of each. */
export async function countIssuesByCheck(
  db: Executor,
  most: number,
): Promise<Pick<WarehouseHealth, 'issues' | 'acknowledgedIssues'>> {
  const { id, checkName, severity } = dataIssues;
  const opened = db
    .select({ severity })
    .from(dataIssues)
    .where(and(eq(checkName, sql`checks.name`), isNew))
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
    acknowledgedIssues: await countUpTo(db, dataIssues, most, isKnown, id),
  };
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
