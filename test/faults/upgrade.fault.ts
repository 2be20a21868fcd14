import { randomUUID } from 'node:crypto';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { taskQueues, workflowIds } from '../../contract/names.ts';
import type { AlarmName } from '../../health/findings.ts';
import { until } from '../support/poll.ts';
import { fault } from './fault.ts';
import { upgradeLarge } from './large-upgrade.ts';
import { unwatchEffects, watchEffects } from './ledger.ts';
import { olderCheckout } from './older-checkout.ts';
import { contentOf, differingMonths, freshSchema, schemaOf } from './older-warehouse.ts';
import type { Rig } from './rig.ts';

/** The revision of the older release, from the option `--from`. */
const from = process.env.FAULTS_FROM;

/** Ends a run that hangs. A run that passes does not depend on this time. */
const within = { timeoutMs: 180_000, everyMs: 100 };

interface Older {
  /** What the upgrade of a large warehouse took. */
  readonly large: string;
}

if (from !== undefined)
  fault<Older>({
    name: 'C21',
    title: 'an older release with data, runs under way and an open alarm is upgraded by one migrate',
    alarms: { must: ['ServiceDown'], may: ['ChangesMissed', 'RunUnwell'] },
    rig: { size: { companies: 3, documents: 400, intervalDays: 2 } },
    around: async (work) => {
      const older = await olderCheckout(from);
      try {
        return await work({ older: older.path }, { large: await upgradeLarge(older.path) });
      } finally {
        await older.remove();
      }
    },
    prepare: async (rig) => {
      expect(await (await startEarlierBackfill(rig.client)).result()).toBe('complete');
      await shareWithAnalysts(rig);
    },
    backfill: 'none',
    loadSeconds: 20,
    strike: async ({ rig, made }) => {
      const { service, parts, launch } = rig;
      // The service is slow, so that the backfill lasts until the new worker runs.
      await service.fault({ kind: 'latency', ms: [300, 600] });
      const run = await startEarlierBackfill(rig.client);
      await until('the backfill has read pages', async () => (await pagesUnderWay(rig)) > 2, within);
      // Workers of an older release must not write to the newer schema, so they are stopped first.
      await parts.worker.stop('SIGTERM');
      expect((await run.describe()).status.name).toBe('RUNNING');
      expect(await pendingEvents(rig)).toBeGreaterThan(0);
      await leaveOpen(rig, 'ServiceDown');
      const before = await contentOf(rig.warehouse);
      await unwatchEffects(rig.warehouse);

      const migrated = await rig.run(['migrate']);
      expect(migrated.status, migrated.stderr).toBe(0);
      expect(await contentOf(rig.warehouse, before)).toEqual(before);
      await analystsCanRead(rig);
      expect(await schemaOf(rig.warehouse.db)).toEqual(await freshSchema());
      await watchEffects(rig.warehouse);
      for (const name of ['worker', 'receiver'] as const) {
        delete launch[name].checkout;
        await parts[name].stop('SIGTERM');
        await parts[name].start();
      }
      await service.clearFaults();
      expect(['complete', 'suspect']).toContain(await run.result());
      expect(['complete', 'suspect']).toContain(await rig.backfill());
      return `from ${from}; ${made.large}`;
    },
    check: async (_figures, { warehouse, parts, said }) => {
      await until('months are worked out', async () => (await differingMonths(warehouse)) === 0, within);
      for (const part of [parts.worker, parts.receiver]) expect(part.endedByItself).toEqual([]);
      expect(said('worker').join('\n')).not.toMatch(/TMPRL1100|Nondeterminism/i);
    },
  });

/** Starts a backfill as version 0.2 does; returns the handle by which the run of a later version is found, too. */
async function startEarlierBackfill(client: Client): Promise<WorkflowHandle> {
  const runId = randomUUID();
  const workflowId = workflowIds.backfill(runId);
  const options = { workflowId, taskQueue: taskQueues.backfill, args: [{ runId }] };
  await client.workflow.start('backfillAll', options);
  return client.workflow.getHandle(workflowId);
}

/** Grants a typed view and another to a role, and creates a user's view on one, as analysts do. */
async function shareWithAnalysts({ warehouse: { db } }: Rig): Promise<void> {
  const made = sql`select to_regclass('fields.documents') is not null as made`;
  await until('the typed view is there', async () => (await db.execute(made)).rows[0]?.made === true, within);
  await db.execute(sql`create role auditor`);
  await db.execute(sql`grant select on fields.documents, analytics.monthly_cost to auditor`);
  await db.execute(
    sql`create view public.mine as select company_id, month, cost from analytics.monthly_cost`,
  );
}

async function analystsCanRead({ warehouse: { db } }: Rig): Promise<void> {
  const { rows } = await db.execute(sql`
    select
      has_table_privilege('auditor', 'fields.documents', 'select') as typed,
      has_table_privilege('auditor', 'analytics.monthly_cost', 'select') as months,
      to_regclass('public.mine') is not null as mine,
      (select count(*) from fields.documents) > 0 as documents`);
  expect(rows).toEqual([{ typed: true, months: true, mine: true, documents: true }]);
}

async function countOf({ warehouse: { db } }: Rig, from: string): Promise<number> {
  const { rows } = await db.execute<{ count: number }>(sql.raw(`select count(*)::int as count from ${from}`));
  return rows[0]?.count ?? 0;
}

const pagesUnderWay = (rig: Rig) =>
  countOf(
    rig,
    `metersync.pages join metersync.runs using (run_id, company_id, resource) where state = 'running'`,
  );

const pendingEvents = (rig: Rig) => countOf(rig, `metersync.events where outcome = 'pending'`);

/** Leaves an alarm open, like a worker that is stopped during an outage that is then over. */
async function leaveOpen({ warehouse: { db } }: Rig, name: AlarmName): Promise<void> {
  await db.execute(sql`
    insert into metersync.alerts (name, key, detail, pending_since, opened_at)
    values (${name}, '', 'it fails every request', now(), now())`);
}
