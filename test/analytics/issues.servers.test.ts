import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { acknowledgeIssue, refreshDataIssues } from '../../db/checks/check-data.ts';
import { listDataIssues } from '../../db/read/issues.ts';
import { readStatus } from '../../db/read/status.ts';
import type { BilledCompany } from '../support/bills.ts';
import { check, companyWith, issues, meterId, setDeleted, today, year } from '../support/checked-bills.ts';
import { forFile } from '../support/for-file.ts';
import { untilLocked } from '../support/lock-waits.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());
const { db } = warehouse;

/** Makes a company whose meter lacks bills of these months of 2025: each is an issue. */
async function companyWithout(...missing: readonly number[]): Promise<BilledCompany> {
  const meter = meterId();
  const company = await companyWith(warehouse, meter);
  await company.bill(year(meter, ...missing));
  return company;
}
const list = ({ id }: BilledCompany, unacknowledged = false) =>
  listDataIssues(db, { companyId: id, unacknowledged }, 10);

test('checks that do not run close no issue', async () => {
  const company = await companyWithout(5);
  await check(warehouse, company);
  await setDeleted(warehouse, company, 'documents');
  const nothing = { opened: 0, closed: 0, stillOpen: 0 };
  expect(await refreshDataIssues(db, [company.id], { kinds: ['intervals'], today })).toEqual(nothing);
  expect(await refreshDataIssues(db, [], { today })).toEqual(nothing);
});

test('an open issue is written again only if it changed or on another day', async () => {
  const company = await companyWithout(5);
  const read = async () =>
    (
      await db.execute<{ version: string; evidence: object; isOfToday: boolean }>(sql`
        select xmin::text as version, evidence, last_seen_at >= current_date as "isOfToday"
        from ops.data_issues where company_id = ${company.id}::uuid`)
    ).rows;
  const stillOpen = { opened: 0, closed: 0, stillOpen: 1 };
  await check(warehouse, company);
  const first = await read();
  expect(await check(warehouse, company)).toEqual(stillOpen);
  expect(await read()).toEqual(first);
  for (const change of [sql`evidence = '{}'`, sql`last_seen_at = last_seen_at - interval '1 day'`]) {
    await db.execute(sql`update ops.data_issues set ${change} where company_id = ${company.id}::uuid`);
    expect(await check(warehouse, company)).toEqual(stillOpen);
    expect(await read()).toEqual([{ ...first[0], version: expect.any(String) }]);
  }
});

test('a check that is off opens no issue, and its open issues of all companies are closed with the reason', async () => {
  const [company, other] = [await companyWithout(5), await companyWithout(5)];
  const states = async (of: BilledCompany) =>
    (
      await db.execute<{ state: string }>(sql`
        select concat_ws(' ', check_name, case when closed_at is null then 'open' end, closed_reason) as state
        from ops.data_issues where company_id = ${of.id}::uuid order by id`)
    ).rows.map(({ state }) => state);
  await check(warehouse, other);
  expect(await states(other)).toEqual(['bill_gap open']);
  const off = ['bill_gap'] as const;
  expect(await refreshDataIssues(db, [company.id], { off, today })).toMatchObject({ opened: 0 });
  expect([await states(company), await states(other)]).toEqual([[], ['bill_gap check_off']]);
  expect(await check(warehouse, other)).toEqual({ opened: 1, closed: 0, stillOpen: 0 });

  await setDeleted(warehouse, other, 'usage_data');
  await check(warehouse, other);
  expect((await states(other)).slice(0, 2)).toEqual(['bill_gap check_off', 'bill_gap evidence_gone']);
});

test('an acknowledged issue stays open with its note and is counted separately, and an issue that returns is new', async () => {
  const company = await companyWithout(5, 8);
  await check(warehouse, company);
  const before = (await readStatus(db)).issues;
  const [issue, later] = await list(company);
  const id = issue?.id ?? 0;
  expect(await acknowledgeIssue(db, id, { note: 'exchanged' })).toBe(true);
  expect(await acknowledgeIssue(db, id, {})).toBe(true);
  expect((await readStatus(db)).issues).toEqual({
    ...before,
    warning: before.warning - 1,
    acknowledged: before.acknowledged + 1,
  });
  await check(warehouse, company);
  expect((await list(company)).map((one) => [one.id, one.acknowledgedNote])).toEqual([
    [later?.id, null],
    [id, 'exchanged'],
  ]);
  expect((await list(company, true)).map((one) => one.id)).toEqual([later?.id]);
  expect(await acknowledgeIssue(db, id, { undo: true })).toBe(true);
  expect((await readStatus(db)).issues).toEqual(before);

  await acknowledgeIssue(db, id, { note: 'exchanged' });
  await setDeleted(warehouse, company, 'usage_data');
  await check(warehouse, company);
  expect(await acknowledgeIssue(db, id, {})).toBe(false);
  await setDeleted(warehouse, company, 'usage_data', false);
  await check(warehouse, company);
  const anew = await list(company, true);
  expect(anew.map((one) => one.subject).sort()).toEqual([issue?.subject, later?.subject].sort());
  expect(anew.every((one) => one.acknowledgedNote === null && one.id > id)).toBe(true);
});

test('an issue moves with its record to another company, and keeps its note', async () => {
  const companies = [await companyWith(warehouse), await companyWith(warehouse)];
  const [to, from] = companies.sort((a, b) => (a.id < b.id ? -1 : 1)) as [BilledCompany, BilledCompany];
  const meter = meterId();
  await from.add({ [meter]: { datasourceType: 'STARLIGHT' } });
  await check(warehouse, from);
  const [issue] = await list(from, true);
  await acknowledgeIssue(db, issue?.id ?? 0, { note: 'odd' });
  await db.execute(sql`update utility.meters set company_id = ${to.id}::uuid where id = ${meter}`);
  await check(warehouse, to, from);
  expect(await list(to)).toMatchObject([{ id: issue?.id, acknowledgedNote: 'odd' }]);
  expect(await list(from)).toEqual([]);
});

test('checks of a company that run at the same time wait for one another and open no issue twice', async () => {
  const [company, other] = [await companyWithout(5), await companyWithout()];
  let second: Promise<unknown> | undefined;
  let done = false;
  await db.transaction(async (tx) => {
    expect(await refreshDataIssues(tx, [company.id], { today })).toMatchObject({ opened: 1 });
    second = check(warehouse, company).finally(() => {
      done = true;
    });
    // Another company can be checked meanwhile.
    await check(warehouse, other);
    await untilLocked(db, 'the second waits for the first');
    expect(done).toBe(false);
  });
  expect(await second).toEqual({ opened: 0, closed: 0, stillOpen: 1 });
  expect(await issues(warehouse, company)).toMatchObject([{ check_name: 'bill_gap', open: true }]);
  const opened = await Promise.all([0, 1, 2].map(() => check(warehouse, company, other)));
  expect(opened.map((one) => one.opened)).toEqual([0, 0, 0]);
});
