import { randomUUID } from 'node:crypto';
import { type SQL, sql, TransactionRollbackError } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { severities } from '../../contract/names.ts';
import { type IssueFilter, listDataIssues } from '../../db/read/issues.ts';
import { createRandom } from '../../sandbox/generate/random.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const checks = ['bill_gap', 'late_bill', 'a_check_that_was_removed'];

interface Issue {
  readonly id: number;
  readonly check: string;
  readonly severity: (typeof severities)[number];
  readonly cost: number;
  readonly minute: number;
  readonly isKnown: boolean;
  readonly isClosed: boolean;
}

test('pages of issues list each open issue once, sorted by acknowledgement, severity, possible cost and age', async () => {
  const { db } = warehouse;
  const random = createRandom(16);
  const issues = Array.from({ length: 60 }, (_, at): Issue => {
    const [check = '', severity = 'info'] = [random.pick(checks), random.pick(severities)];
    const [minute, isKnown, isClosed] = [random.int(0, 5), random.int(0, 3) === 0, random.int(0, 4) === 0];
    const cost = random.int(0, 2) * 100;
    return { id: at + 1, check, severity, cost, minute, isKnown, isClosed };
  });
  for (const { id, check, severity, cost, minute, isKnown, isClosed } of issues)
    await db.execute(sql`
      insert into ops.data_issues (id, check_name, severity, company_id, entity_type, entity_id, subject,
        evidence, opened_at, acknowledged_at, closed_at, closed_reason)
      overriding system value
      values (${id}, ${check}, ${severity}, ${randomUUID()}::uuid, 'meter', ${`m-${id}`}, '',
        ${cost === 0 ? '{}' : `{"may_cost": ${cost}.50}`}::jsonb,
        '2026-01-01'::timestamptz + interval '1 minute' * ${minute}::int,
        case when ${isKnown}::boolean then now() end,
        case when ${isClosed}::boolean then now() end,
        case when ${isClosed}::boolean then 'evidence_gone' end)`);
  const listed = async (filter: IssueFilter): Promise<number[]> => {
    const ids: number[] = [];
    for (;;) {
      const page = await listDataIssues(db, filter, 4, ids.at(-1));
      ids.push(...page.map(({ id }) => id));
      if (page.length < 4) return ids;
    }
  };
  const inOrder = (which: (issue: Issue) => boolean): number[] =>
    issues
      .filter((issue) => !issue.isClosed && which(issue))
      .toSorted(
        (a, b) =>
          Number(a.isKnown) - Number(b.isKnown) ||
          severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
          b.cost - a.cost ||
          b.minute - a.minute ||
          b.id - a.id,
      )
      .map(({ id }) => id);
  expect(await listed({})).toEqual(inOrder(() => true));
  expect(await listed({ unacknowledged: true })).toEqual(inOrder(({ isKnown }) => !isKnown));
  for (const severity of severities) {
    expect(await listed({ severity })).toEqual(inOrder((issue) => issue.severity === severity));
    const closed = await listed({ severity, closed: true, unacknowledged: true });
    const expected = issues.filter((one) => one.isClosed && !one.isKnown && one.severity === severity);
    expect(closed.toSorted()).toEqual(expected.map(({ id }) => id).toSorted());
  }
  for (const checkName of checks)
    expect(await listed({ checkName, severity: 'error' })).toEqual(
      inOrder((issue) => issue.check === checkName && issue.severity === 'error'),
    );
});

test('an open issue is never looked up through an index for lists, which would read all issues of its check', async () => {
  const indexes = async (lookup: SQL): Promise<string> => {
    const plans: string[] = [];
    await warehouse.db
      .transaction(async (tx) => {
        await tx.execute(sql`drop index ops.data_issues_open, ops.data_issues_company`);
        await tx.execute(sql`set local enable_seqscan = off`);
        const { rows } = await tx.execute<{ 'QUERY PLAN': string }>(sql`
          explain select id from ops.data_issues where ${lookup}`);
        plans.push(...rows.map((row) => row['QUERY PLAN']));
        tx.rollback();
      })
      .catch((error: unknown) => {
        if (!(error instanceof TransactionRollbackError)) throw error;
      });
    return plans.join('\n');
  };
  const ofCheck = sql`closed_at is null and check_name = 'bill_gap'`;
  expect(await indexes(sql`${ofCheck} and id > 0`)).toContain('data_issues_of_check');
  expect(await indexes(sql`${ofCheck} and entity_id = 'm-1'`)).not.toMatch(/data_issues_(of_check|listed)/);
  expect(await indexes(sql`closed_reason is null and company_id = ${randomUUID()}`)).not.toMatch(
    /data_issues_(of_check|listed)/,
  );
});
