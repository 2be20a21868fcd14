import v8 from 'node:v8';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { replayHistories } from '../../app/temporal/replay-histories.ts';
import { workflowIds, workflowNames } from '../../contract/names.ts';
import { changedCheckout } from '../faults/changed-checkout.ts';
import { runProcess } from '../support/command-process.ts';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';
import { pauseWatch } from '../support/watch.ts';

const pipeline = await forFile(startPipeline({ size: { companies: 1, documents: 2 }, parts: [] }));
const worker = await pipeline.run('worker');
const { client, warehouse } = pipeline;
// A running look of the watch would add a history.
await pauseWatch(client);
await pipeline.backfill();
// Another backfill reads its company until the end of the tests.
await pipeline.service.fault({ kind: 'latency', ms: [600_000, 600_000] });
const { rows } = await warehouse.db.execute<{ id: string }>(sql`select id from utility.companies`);
const runId = await startBackfill(client, { db: warehouse.db, companies: rows.map(({ id }) => id) });
await until('it has begun', async () => {
  const { raw } = await client.workflow.getHandle(workflowIds.backfill(runId)).describe();
  return (raw.pendingActivities ?? []).length > 0;
});

test('a version that can replay the running workflows may take over, and others are refused with the reason', {
  timeout: 120_000,
}, async () => {
  const { client, env } = pipeline;
  const check = await runProcess(['upgrade', 'check', '--json'], { env });
  expect(check.status, check.stderr).toBe(0);
  expect(JSON.parse(check.stdout)).toMatchObject({
    go: true,
    besideOld: true,
    schema: { statements: 0 },
    replayed: { histories: 1, failures: [] },
    running: { backfill: 1 },
    openGroups: 0,
  });

  const mistaken = await changedCheckout('unpatched');
  try {
    const { bundleWorkflows } = await import(`${mistaken.path}/app/temporal/workflow-bundle.ts`);
    const workflowBundle = await bundleWorkflows(pino({ level: 'silent' }));
    const hook = vi.spyOn(v8.promiseHooks, 'createHook');
    const { failures } = await replayHistories(client, { workflowBundle, which: 'running', most: 50 });
    expect(hook, 'stack traces of promises, which take half of the time').not.toHaveBeenCalled();
    hook.mockRestore();
    expect(failures).toMatchObject([
      {
        workflowId: workflowIds.backfill(runId),
        type: workflowNames.backfill,
        why: /[Nn]ondeterminism/,
      },
    ]);
  } finally {
    await mistaken.remove();
  }
});

test('Temporal cannot be replaced while it has events that no worker has recorded', {
  timeout: 60_000,
}, async () => {
  const { client, env } = pipeline;
  await worker.stop();
  const group = await client.workflow.start(workflowNames.applyEvents, {
    workflowId: 'events/waiting',
    taskQueue: 'nobody-listens',
    args: [],
  });
  const listed = `WorkflowId = 'events/waiting'`;
  await until('the group is listed', async () => (await client.workflow.count(listed)).count === 1);
  // The command gets its own process. Temporal's runtime can be installed only once in a process, and other
  // test files may have installed it here.
  const check = (...more: string[]) => runProcess(['upgrade', 'check', ...more], { env });
  const [product, temporal] = [await check(), await check('--temporal')];
  await group.terminate();
  expect(product, product.stderr).toMatchObject({ status: 0, stdout: expect.stringContaining('Go: ') });
  expect(temporal.status).toBe(1);
  expect(temporal.stdout).toMatch(
    /^No: this version cannot take over now\.\n(.*\n)*1 group of events not yet recorded\.\n {2}Only Temporal has/,
  );
});
