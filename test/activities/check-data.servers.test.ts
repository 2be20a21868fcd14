import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import type { DataCheck } from '../../activities/checks.ts';
import type { CheckName } from '../../contract/check-names.ts';
import { checkKinds } from '../../contract/names.ts';
import { chooseCompanies } from '../../db/backfill/run-companies.ts';
import { companiesToCheck, deleteOutdatedChecks } from '../../db/checks/companies-to-check.ts';
import type { Database } from '../../db/connection/connect.ts';
import { countAbsent, retireAbsent } from '../../db/deletes/absent.ts';
import { approveDeletes, undoDeletes } from '../../db/deletes/decide.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { activitiesOn } from '../support/activities.ts';
import { BilledCompany } from '../support/bills.ts';
import { writeRecords } from '../support/pages.ts';

/** Lists the companies that a backfill would check now. */
async function dueNow(db: Database, off: readonly CheckName[] = []) {
  await deleteOutdatedChecks(db, off);
  return await companiesToCheck(db, { runId: randomUUID(), kinds: checkKinds });
}

async function checking() {
  const under = await activitiesOn(() => ({ json: [] }));
  const { db } = under.warehouse;
  return {
    db,
    warehouse: under.warehouse,
    run: (input: Partial<DataCheck>) =>
      under.run(under.activities.checkData, { runId: randomUUID(), kinds: checkKinds, ...input }),
    /** Makes a company with an issue to find, and one meter. */
    company: async () => {
      const made = new BilledCompany(under.warehouse);
      const meterId = randomUUID();
      await made.add({ [meterId]: { datasourceType: 'STARLIGHT' } });
      // The state is as if the months of the company had been computed before.
      await db.execute(sql`delete from metersync.company_changes`);
      return { id: made.id, siteId: made.siteId, meterId };
    },
    /** Lists the companies with issues. */
    found: async () =>
      (
        await db.execute<{ id: string }>(
          sql`select distinct company_id as id from ops.data_issues order by 1`,
        )
      ).rows.map(({ id }) => id),
    /** Lists the companies that a backfill would check now, if the last checks were an hour ago. */
    due: async (off: readonly CheckName[] = []) => {
      await db.execute(sql`update metersync.data_checks set seen_until = now() - interval '1 hour'`);
      return (await dueNow(db, off)).map(({ id, kinds }) => [id, kinds.join(' ')]);
    },
    event: (event: {
      readonly companyId?: string;
      readonly meterId?: string;
      readonly appliedMinutesAgo: number;
      readonly receivedHoursAgo?: number;
    }) =>
      db.execute(sql`
      insert into metersync.journal
        (id, type, kind, record_id, company_id, received_at, recorded_at, outcome, settled_at)
      select ${randomUUID()}, 'any', ${event.meterId === undefined ? 'document' : 'interval'},
        ${event.meterId ?? randomUUID()}, ${event.companyId ?? null}::uuid, came_at, came_at, 'applied',
        now() - make_interval(mins => ${event.appliedMinutesAgo})
      from (select now() - make_interval(hours => ${event.receivedHoursAgo ?? 3}) as came_at) came`),
  };
}

const all = 'bills connections intervals';

test('a run checks the companies that changed since their last check', async () => {
  const { db, run, company, found, due, event } = await checking();
  const made = [await company(), await company(), await company()];
  made.sort((one, other) => (one.id < other.id ? -1 : 1));
  const [one, two, three] = made.map(({ id }) => id);
  const everything = [
    [one, all],
    [two, all],
    [three, all],
  ];
  expect(await due()).toEqual(everything);
  await run({});
  expect(await found()).toEqual([one, two, three]);
  expect(await due()).toEqual([]);
  // A reconcile checks companies too, but leaves the checks of intervals to the next backfill.
  await db.execute(sql`delete from metersync.data_checks where company_id = ${one}::uuid`);
  await run({ kinds: ['bills', 'connections'] });
  expect(await due()).toEqual([[one, 'intervals']]);
  await run({});

  // A run changed one row of a company, and none of another company.
  const part = (id: string | undefined, changed: number, resource = 'usageData') =>
    db.execute(sql`
    insert into metersync.runs (run_id, company_id, resource, state, finished_at, rows_changed, rows_unchanged)
    values (${randomUUID()}::uuid, ${id}::uuid, ${resource}, 'complete', now() - interval '30 minutes', ${changed}, 9)`);
  await part(one, 0);
  await part(two, 1);
  expect(await due()).toEqual([[two, all]]);
  // The company stays due until it is checked.
  expect(await due()).toEqual([[two, all]]);
  await run({});
  await db.execute(sql`delete from metersync.runs`);
  // Readings belong to only one kind of checks.
  await part(two, 1, 'intervals');
  expect(await due()).toEqual([[two, 'intervals']]);
  await run({});
  await db.execute(sql`delete from metersync.runs`);
  expect(await due()).toEqual([]);

  // Events change companies. Events about readings name only the meter.
  await event({ companyId: one ?? '', appliedMinutesAgo: 90 });
  await event({ companyId: three ?? '', appliedMinutesAgo: 30 });
  expect(await due()).toEqual([[three, all]]);
  await event({ meterId: made[1]?.meterId ?? '', appliedMinutesAgo: 20, receivedHoursAgo: 50 });
  expect(await due()).toEqual([
    [two, 'intervals'],
    [three, all],
  ]);
  await db.execute(sql`delete from metersync.journal`);
  await run({});

  // Companies are also due on another day, with other checks, and after an override of a site.
  await db.execute(
    sql`update metersync.data_checks set today = current_date - 1 where company_id = ${one}::uuid`,
  );
  expect(await due()).toEqual([[one, 'bills connections']]);
  await run({});
  expect(await due()).toEqual([]);
  expect(await due(['late_bill'])).toEqual(everything);
  await run({});
  await db.execute(
    sql`insert into ops.site_overrides (site_id, time_zone) values (${made[0]?.siteId}::uuid, 'Europe/Berlin')`,
  );
  expect(await due()).toEqual(everything);
});

test.each(['documents', 'connections'] as const)(
  'a company is due for checks if its %s were tombstoned or restored after their part of the run',
  async (resource) => {
    const { db, warehouse, run, company, due } = await checking();
    const { id: companyId } = await company();
    const id = randomUUID();
    await writeRecords(warehouse, resource, [{ id }], { companyId });
    const checked = async () => {
      await run({});
      // `due` looks as if an hour had passed, so the computation of the months is dated back further.
      await db.execute(
        sql`update metersync.company_changes set changed_at = changed_at - interval '2 hours' where is_kept`,
      );
      expect(await due()).toEqual([]);
    };
    const retire = async (rows: number) => {
      const runId = randomUUID();
      const seen = { ids: [], beganAt: await warehouseNow(db) };
      await retireAbsent(db, runId, { resource, companyId }, seen, { rows, percent: 100 });
      return runId;
    };
    const isDue = [[companyId, all]];
    await checked();
    // A tombstone after the part of the run makes all checks of the company due.
    const gone = await retire(1);
    expect(await due()).toEqual(isDue);
    await checked();
    expect(await undoDeletes(db, gone)).toMatchObject({ revived: 1 });
    expect(await due()).toEqual(isDue);
    await checked();
    await countAbsent(db, { resource, companyId }, { ids: [id], beganAt: new Date().toISOString() });
    const quarantined = await retire(0);
    expect(await due()).toEqual([]);
    expect(await approveDeletes(db, quarantined)).toMatchObject({ tombstoned: 1 });
    await keepMonths(db, { budgetSeconds: 60 });
    expect(await due()).toEqual(isDue);
  },
);

test('the months of companies are recomputed before the checks of a run', async () => {
  const { db, run, company } = await checking();
  const { id } = await company();
  await db.execute(sql`insert into metersync.company_changes (company_id) values (${id}::uuid)`);
  await run({});
  const { rows } = await db.execute(sql`select company_id from metersync.company_changes where is_kept`);
  expect(rows).toEqual([{ company_id: id }]);
});

test('a change that commits after the check of its company is not lost', async () => {
  const { db, run, company } = await checking();
  const { id, meterId } = await company();
  await db.transaction(async (tx) => {
    await tx.execute(sql`update utility.meters set deleted_at = now() where id = ${meterId}`);
    await run({});
    const { rows } = await tx.execute(
      sql`select distinct (now() - seen_until)::text as before from metersync.data_checks`,
    );
    expect(rows).toEqual([{ before: '00:00:01' }]);
    expect(await dueNow(db)).toEqual([]);
  });
  expect(await dueNow(db)).toEqual([{ id, kinds: checkKinds }]);
});

test('a company is not checked again for a change that its last check saw', async () => {
  const { db, run, company } = await checking();
  await company();
  await run({});
  // A check counts changes of its last second as not seen.
  await db.execute(sql`update metersync.company_changes set changed_at = changed_at - interval '10 seconds'`);
  expect(await dueNow(db)).toEqual([]);
});

test('a run of chosen companies checks only them, and another attempt checks the rest', async () => {
  const { db, run, company, found, due } = await checking();
  const ids = [(await company()).id, (await company()).id, (await company()).id].sort();
  const [one = '', two = '', three = ''] = ids;
  const chosen = async (...companies: readonly string[]) => {
    const runId = randomUUID();
    await chooseCompanies(db, runId, companies);
    return { runId };
  };
  await run(await chosen(three, two));
  expect(await found()).toEqual([two, three]);
  expect(await due()).toEqual([[one, all]]);
  // This is the state after an attempt that ended after the second company.
  await db.execute(sql`delete from ops.data_issues`);
  await db.execute(sql`delete from metersync.data_checks where company_id = ${three}::uuid`);
  await run(await chosen(three, two));
  expect(await found()).toEqual([three]);
  await run(await chosen(one));
  expect(await due()).toEqual([]);
});
