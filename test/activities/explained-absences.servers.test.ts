import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { approveDeletes, readDeletes, rejectDeletes, undoDeletes } from '../../db/deletes/decide.ts';
import { recordEvents } from '../../db/events/record.ts';
import { readHealth } from '../../db/read/health.ts';
import { audit } from '../../operations/audit/audit.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { type ActivitiesUnderTest, activitiesOn, queues } from '../support/activities.ts';
import { alive, type Bill, BillingService, backfill, type Lists } from '../support/billing.ts';
import { shapeOf } from '../support/scripted-service.ts';

/** Lists the deletions that wait for a person, by resource and number of rows. */
const held = async ({ warehouse }: Pick<ActivitiesUnderTest, 'warehouse'>) =>
  (await readDeletes(warehouse.db, { all: false })).map(({ resource, rows }) => [resource, rows]);

/** Backfills. Returns how the run ends, which deletions wait, and how many records then differ. */
async function outcome(service: BillingService, under: ActivitiesUnderTest) {
  const { state } = await backfill(under, service.companies);
  const { client } = await setup(service.script);
  const { differences } = await audit({ warehouse: under.warehouse, service: client, concurrency: 1 });
  return { state, held: await held(under), differences };
}
const equal = { state: 'complete', held: [], differences: 0 };

/** Makes a service whose bills have two usage rows each, and reads it with a backfill. */
async function loaded(bills: number, lists: Lists = 'nothing', companies = 1) {
  const service = new BillingService(companies);
  for (let bill = 0; bill < bills; bill++) service.add(2, lists);
  const under = await activitiesOn(service.script);
  expect(await outcome(service, under)).toEqual(equal);
  return { service, under, db: under.warehouse.db };
}

/** Hides the usage rows of some bills in the usage listing, although the bills did not change. */
function hideUsage(service: BillingService, bills: readonly Bill[]) {
  const hidden = new Set(bills.map(({ id }) => id));
  service.lie = (asked) => {
    if (!asked.path.startsWith('/v2.2/usage/company/')) return undefined;
    const shown = service.bills.filter(({ id }) => !hidden.has(id));
    const rows = shown.flatMap((bill) => bill.usage.map((id) => ({ id, document: { id: bill.id } })));
    return pageOf(rows, asked, shapeOf('usageData'));
  };
}

const honest = () => undefined;
const failing =
  (prefix: string) =>
  ({ path }: Asked): Reply | undefined =>
    path.startsWith(prefix) ? { status: 403, json: { detail: 'Not now.' } } : undefined;
const correctAll = (service: BillingService, bills: readonly Bill[]) =>
  bills.map((bill) => service.correct(bill));

describe('one backfill after an outage that lost events makes the warehouse equal to the service', () => {
  test.each([
    ['nothing', 80, 3, 9],
    ['nothing', 21, 2, 0],
    ['others', 203, 3, 40],
  ] as const)(
    'if bills list %s (%i bills of %i rows, %i corrected)',
    async (lists, bills, rows, corrected) => {
      const service = new BillingService();
      for (let bill = 0; bill < bills; bill++) service.add(rows, lists);
      const under = await activitiesOn(service.script);
      expect(await outcome(service, under)).toEqual(equal);

      const [shortened, deleted, announced, ...others] = service.bills as [Bill, Bill, Bill, ...Bill[]];
      correctAll(service, others.slice(0, corrected));
      service.correct(shortened, rows - 1, rows - 1);
      service.remove(deleted);
      await recordEvents(under.warehouse.db, [service.correct(announced)]);
      expect(await outcome(service, under)).toEqual(equal);
    },
    60_000,
  );

  test('even if an earlier run read the corrected bills, but not their usage', async () => {
    const { service, under } = await loaded(20);
    correctAll(service, service.bills.slice(0, 8));
    service.lie = failing('/v2.2/usage/company/');
    expect((await backfill(under, service.companies)).state).toBe('partial');
    service.lie = honest;
    expect(await outcome(service, under)).toEqual(equal);
  });

  test('even if the only bill of a company was deleted, or lost its usage', async () => {
    for (const change of [
      (service: BillingService, bill: Bill) => service.remove(bill),
      (service: BillingService, bill: Bill) => service.correct(bill, 0, 0),
    ]) {
      const { service, under } = await loaded(1, 'others');
      const other = service.add(1);
      expect(await outcome(service, under)).toEqual(equal);
      service.bills = service.bills.filter(({ id }) => id !== other.id);
      service.correct(other, 0, 0);
      service.bills.push(other);
      change(service, service.bills[0] as Bill);
      expect(await outcome(service, under)).toEqual(equal);
    }
  });
});

describe('absences that nothing explains are held back beyond the cap', () => {
  const nothing = () => {};
  test.each<[string, Lists, (service: BillingService, bills: readonly Bill[]) => void]>([
    ['of bills that did not change', 'nothing', nothing],
    ['of bills that list them', 'its usage', correctAllKept],
    ['of bills that changed only in other fields', 'others', relink],
  ])('%s', async (_, lists, change) => {
    const { service, under } = await loaded(20, lists);
    const bills = service.bills.slice(0, 8);
    hideUsage(service, bills);
    change(service, bills);
    const { state } = await backfill(under, service.companies);
    expect([state, await held(under)]).toEqual(['suspect', [['usageData', 16]]]);
    service.lie = honest;
    expect(await outcome(service, under)).toEqual(equal);
  });

  test('even if their bills have a new version that a complete backfill has read together with the rows', async () => {
    const { service, under } = await loaded(20);
    const bills = service.bills.slice(0, 8);
    correctAllKept(service, bills);
    expect(await outcome(service, under)).toEqual(equal);
    hideUsage(service, bills);
    await backfill(under, service.companies);
    expect(await held(under)).toEqual([['usageData', 16]]);
  });

  test('if a listing is empty, however few they are, until somebody decides', async () => {
    const { service, under, db } = await loaded(2);
    hideUsage(service, service.bills);
    const { runId, state } = await backfill(under, service.companies);
    expect([state, await held(under)]).toEqual(['suspect', [['usageData', 4]]]);
    expect(await alive(under, 'usage_data')).toHaveLength(4);
    expect(await approveDeletes(db, runId)).toEqual({ tombstoned: 4, spared: 0 });
    expect((await backfill(under, service.companies)).state).toBe('complete');
  });

  test('except the usage of a document that somebody kept, because it stays with its document', async () => {
    const { service, under, db } = await loaded(20);
    const [bill] = service.bills as [Bill];
    service.remove(bill);
    const { runId } = await backfill(under, service.companies);
    expect(await undoDeletes(db, runId)).toMatchObject({ revived: 1 });
    expect((await backfill(under, service.companies)).state).toBe('complete');
    expect(await held(under)).toEqual([]);
    expect(await alive(under, 'usage_data')).toEqual(expect.arrayContaining([...bill.usage]));
    expect((await readHealth(db)).keptDeletes).toBe(1);
  });

  test('and stay once somebody decided to keep them, whatever explains them later', async () => {
    const { service, under, db } = await loaded(20);
    const bills = service.bills.slice(0, 8);
    const rows = bills.flatMap(({ usage }) => usage);
    hideUsage(service, bills);
    const { runId } = await backfill(under, service.companies);
    expect(await rejectDeletes(db, runId)).toEqual({ kept: 16 });
    service.lie = honest;
    correctAll(service, bills);
    expect((await backfill(under, service.companies)).state).toBe('complete');
    expect(await held(under)).toEqual([]);
    expect(await alive(under, 'usage_data')).toEqual(expect.arrayContaining(rows));
  });
});

function correctAllKept(service: BillingService, bills: readonly Bill[]): void {
  for (const bill of bills) service.correct(bill, bill.usage.length);
}

function relink(_: BillingService, bills: readonly Bill[]): void {
  for (const bill of bills) bill.link = randomUUID();
}

describe('rows that are held back no longer wait for a decision once they are explained', () => {
  /** Makes a backfill hold back the usage of eight bills. The backfill before it was complete. */
  async function holding() {
    const loadedOne = await loaded(20);
    const { service, under, db } = loadedOne;
    const bills = service.bills.slice(0, 8);
    hideUsage(service, bills);
    const { runId } = await backfill(under, service.companies);
    expect(await held(under)).toEqual([['usageData', 16]]);
    expect((await readHealth(db)).runs.full.last?.state).toBe('suspect');
    const rows = bills.flatMap(({ usage }) => usage);
    service.lie = honest;
    return { ...loadedOne, bills, rows, runId };
  }

  /** Checks that nothing waits for a person in any report. Returns which of the rows are live. */
  const settled = async ({ under, db, rows }: Awaited<ReturnType<typeof holding>>) => {
    expect(await held(under)).toEqual([]);
    const { undecidedDeletes, runs } = await readHealth(db);
    expect([undecidedDeletes, runs.full.last?.state]).toEqual([0, 'complete']);
    const living = new Set(await alive(under, 'usage_data'));
    return rows.filter((id) => living.has(id));
  };
  const catchUp = async ({ under, service }: Awaited<ReturnType<typeof holding>>) =>
    await under.run(under.activities.sweepOwners, { owners: queues('documents', service.companies) });

  test('by events that delete their bills', async () => {
    const holds = await holding();
    await recordEvents(
      holds.db,
      holds.bills.map((bill) => holds.service.remove(bill)),
    );
    expect(await settled(holds)).toEqual([]);
  });

  test('by a read that finds the rows again', async () => {
    const holds = await holding();
    const events = holds.bills.map((bill) => holds.service.correct(bill, bill.usage.length));
    await recordEvents(holds.db, events);
    await catchUp(holds);
    expect(await settled(holds)).toEqual(holds.rows);
    expect(await outcome(holds.service, holds.under)).toEqual(equal);
  });

  test('by a pass over their bills, even if the usage listing fails', async () => {
    const holds = await holding();
    const { service, under, bills } = holds;
    correctAll(service, bills);
    service.lie = failing('/v2.2/usage/company/');
    expect((await backfill(under, service.companies)).state).toBe('partial');
    expect(await held(under)).toEqual([]);
    expect(await alive(under, 'usage_data')).toHaveLength(40 - 16);
  });

  test('by a reconcile that reads their bills', async () => {
    const holds = await holding();
    const { service, under, bills } = holds;
    correctAll(service, bills);
    const runId = randomUUID();
    const [companyId = ''] = service.companies;
    await under.run(under.activities.beginRun, { runId, kind: 'reconcile' });
    const resources = ['documents'] as const;
    await under.run(under.activities.reconcileCompany, { runId, companyId, resources });
    await under.run(under.activities.concludeRun, { runId });
    expect(await settled(holds)).toEqual([]);
  });

  test('by the approval of the deletion of their company', async () => {
    const holds = await holding();
    const { service, under, db } = holds;
    const companyId = service.company;
    service.companies = [];
    const { runId } = await backfill(under, [companyId]);
    expect(await held(under)).toContainEqual(['companies', 1]);
    expect(await approveDeletes(db, runId)).toMatchObject({ tombstoned: 1 });
    expect(await held(under)).toEqual([]);
  });
});
