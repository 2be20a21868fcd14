import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { type RunState, taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { startPipeline } from '../support/pipeline.ts';

test('a reconcile finds new, changed and deleted documents without events', {
  timeout: 120_000,
}, async () => {
  const pipeline = await startPipeline({
    size: { companies: 3, documents: 120, intervalDays: 1 },
    parts: [],
  });
  onTestFinished(() => pipeline.stop());
  // The test deletes more documents of three companies than a run tombstones by default.
  await pipeline.run('worker', { DELETES_CAP_PERCENT: '100' });
  const { service, client, warehouse } = pipeline;
  expect(await pipeline.backfill()).toBe('complete');
  // No receiver listens at the endpoint, so these events are lost.
  await service.random(60, 5, ['createDocument', 'reprocessDocument', 'deleteDocument']);
  expect((await pipeline.audit()).differences).toBeGreaterThan(20);

  const reconcile = (runId: string): Promise<RunState> =>
    client.workflow.execute(workflowNames.backfillUpdates, {
      workflowId: workflowIds.reconcile(runId),
      taskQueue: taskQueues.backfill,
      args: [{ runId }],
    });
  const first = randomUUID();
  expect(await reconcile(first)).toBe('complete');
  expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });
  const runs = await warehouse.db.execute<{ resource: string; requests: number; tombstoned: number }>(sql`
    select resource, sum(requests)::int as requests, sum(rows_tombstoned)::int as tombstoned
    from metersync.runs where kind = 'reconcile' and company_id is not null group by resource order by 1`);
  const [documents, usageData] = runs.rows;
  expect(documents).toMatchObject({ resource: 'documents', tombstoned: expect.toSatisfy((n) => n > 0) });
  expect(usageData).toMatchObject({ resource: 'usageData', tombstoned: 0 });
  const requests = (documents?.requests ?? 0) + (usageData?.requests ?? 0);
  expect(requests, 'a page or two of each listing and company').toBeLessThanOrEqual(3 * 5);

  // Checks of all companies follow the backfill. A reconcile that changed nothing has nothing to check.
  const checks = (runId: string) => client.workflow.getHandle(workflowIds.checkData(runId)).result();
  const [backfill] = (
    await warehouse.db.execute<{ id: string }>(sql`
    select run_id::text as id from metersync.runs where kind = 'full' and resource is null and company_id is null`)
  ).rows;
  await Promise.all([checks(backfill?.id ?? ''), checks(first)]);
  // Checks have a task queue of their own.
  const history = await client.workflow.getHandle(workflowIds.checkData(first)).fetchHistory();
  const scheduled = (history.events ?? []).flatMap(({ activityTaskScheduledEventAttributes: at }) =>
    at ? [at] : [],
  );
  expect(scheduled.map(({ taskQueue }) => taskQueue?.name)).toEqual([taskQueues.checks]);
  // The state is as if the changes before the checks were long ago.
  await warehouse.db.execute(sql`update metersync.data_checks set seen_until = now() + interval '1 hour'`);
  const forgotten = await warehouse.db.execute(sql`delete from ops.data_issues`);
  expect(forgotten.rowCount).toBeGreaterThan(0);
  const second = randomUUID();
  expect(await reconcile(second)).toBe('complete');
  await checks(second);
  expect((await warehouse.db.execute(sql`select from ops.data_issues`)).rowCount).toBe(0);
});
