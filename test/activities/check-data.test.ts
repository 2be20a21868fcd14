import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { activitiesOn } from '../support/activities.ts';
import { BilledCompany } from '../support/bills.ts';

test('after a reconcile the companies are checked that it or an event changed something for, after a backfill all', async () => {
  const under = await activitiesOn(() => ({ json: [] }));
  const { db } = under.warehouse;
  const company = async () => {
    const made = new BilledCompany(under.warehouse);
    await made.add({ [randomUUID()]: { datasourceType: 'STARLIGHT' } });
    return made.id;
  };
  const [changed, buried, told, toldBefore, same] = [
    ...[await company(), await company(), await company(), await company(), await company()],
  ];
  const [before, runId] = [randomUUID(), randomUUID()];
  await db.execute(sql`
    insert into metersync.runs (run_id, company_id, resource, kind, state, started_at, rows_changed, rows_tombstoned, rows_unchanged)
    values (${before}::uuid, null, null, 'reconcile', 'complete', now() - interval '1 hour', 0, 0, 0),
      (${before}::uuid, ${same}::uuid, 'documents', 'reconcile', 'complete', now() - interval '1 hour', 9, 0, 0),
      (${runId}::uuid, null, null, 'reconcile', 'complete', now(), 1, 1, 5),
      (${runId}::uuid, ${changed}::uuid, 'documents', 'reconcile', 'complete', now(), 1, 0, 0),
      (${runId}::uuid, ${buried}::uuid, 'documents', 'reconcile', 'complete', now(), 0, 1, 0),
      (${runId}::uuid, ${told}::uuid, 'documents', 'reconcile', 'complete', now(), 0, 0, 2),
      (${runId}::uuid, ${same}::uuid, 'documents', 'reconcile', 'complete', now(), 0, 0, 3)`);
  const event = (id: string, minutesAgo: number) => sql`
    insert into metersync.settlements (kind, record_id, owner, since, read_at, shown, outcome, settled_at)
    values ('document', ${id}, ${id}, now(), now(), 'infinity', 'applied', now() - make_interval(mins => ${minutesAgo}))`;
  // It waited for hours, and was applied after the reconcile before had begun.
  await db.execute(event(told ?? '', 30));
  await db.execute(event(toldBefore ?? '', 90));

  const checked = async () =>
    (
      await db.execute<{ id: string }>(sql`select distinct company_id as id from ops.data_issues order by 1`)
    ).rows.map(({ id }) => id);
  const kinds = ['bills', 'connections'] as const;
  await under.run(under.activities.checkData, { runId, kinds, changedOnly: true });
  expect(await checked()).toEqual([changed, buried, told].sort());
  await under.run(under.activities.checkData, { runId, kinds });
  expect(await checked()).toEqual([changed, buried, told, toldBefore, same].sort());
});
