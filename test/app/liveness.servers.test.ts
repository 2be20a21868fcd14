import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, inject, type TestContext, test } from 'vitest';
import { taskQueues, workflowNames } from '../../contract/names.ts';
import { startCommand, withoutThreads } from '../support/command-process.ts';
import { createDeployment } from '../support/deployment.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { startTemporalProxy } from '../support/temporal-proxy.ts';

/** How long a poll without work takes in this test. Elsewhere it takes a minute. */
const pollSeconds = 3;

const deployment = await forFile(
  createDeployment({
    env: { SERVICE_URL: 'http://127.0.0.1:9/v2.2', SERVICE_API_KEY: 'none' },
  }),
);

/** Starts a worker behind a proxy, and waits until it polls. */
async function startWorker(withinMs: number, { onTestFinished }: TestContext) {
  const proxy = await startTemporalProxy(inject('temporalAddress'), pollSeconds);
  const port = await freePort();
  const worker = startCommand(['worker'], {
    program: 'test/support/impatient-worker.ts',
    env: {
      ...deployment.env,
      ...withoutThreads,
      TEMPORAL_ADDRESS: proxy.address,
      METRICS_PORT: String(port),
      POLL_WITHIN_MS: String(withinMs),
    },
  });
  onTestFinished(async () => {
    await worker.end('SIGKILL');
    await proxy.leave();
  });
  await worker.printed(/worker: running/);
  const ask = async (path: string): Promise<{ status: number; body: unknown }> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, body: await answer.json() };
  };
  const polled = proxy.polls.passed;
  await until('it has polled again', () => proxy.polls.passed > 2 * polled);
  expect(await ask('/healthz')).toMatchObject({ status: 200 });
  return { proxy, ask };
}

describe.concurrent('/healthz of a worker', () => {
  test('answers 503 soon after the last poll, even though Temporal answers everything else', async (context) => {
    const { proxy, ask } = await startWorker(12_000, context);
    proxy.holdPolls();
    const dead = await until('all its queues are dead', async () => {
      const { status, body } = await ask('/healthz');
      const said = JSON.stringify(body);
      return status === 503 && Object.values(taskQueues).every((queue) => said.includes(queue))
        ? body
        : undefined;
    });
    expect(dead).toEqual({
      status: 'dead',
      why: { worker: expect.stringMatching(/^it no longer polls metersync-/) },
    });
    expect(proxy.polls.held).toBeGreaterThan(0);
    // On a busy machine one request to Temporal may be answered late.
    await until('it is ready all the same', async () => (await ask('/readyz')).status === 200);
  });

  test('stays 200 while Temporal is down, because each attempt to poll counts', async (context) => {
    // While Temporal is down, attempts are ten seconds apart, and each is noticed within five seconds.
    const withinMs = 22_000;
    const { proxy, ask } = await startWorker(withinMs, context);
    await proxy.leave();
    const left = performance.now();
    const answers = new Set<number>();
    const passed = async () => {
      answers.add((await ask('/healthz')).status);
      return performance.now() - left > withinMs + 2_000;
    };
    await until('the time for a poll has passed', passed, { timeoutMs: 60_000, everyMs: 500 });
    expect([...answers]).toEqual([200]);
    expect(await ask('/readyz')).toMatchObject({ status: 503 });
  });

  test('stays 200 while a check of the data takes long, although it uses the only slot of its queue', async (context) => {
    const withinMs = 12_000;
    const { ask } = await startWorker(withinMs, context);
    const { client, warehouse } = deployment;
    const check = { runId: randomUUID(), kinds: ['bills'] };
    const answers = new Set<number>();
    await warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`lock table metersync.run_companies`);
      const options = { workflowId: 'a-long-check', taskQueue: taskQueues.backfill, args: [check] };
      const handle = await client.workflow.start(workflowNames.checkData, options);
      const began = await until('it checks', async () => {
        const { raw } = await handle.describe();
        return raw.pendingActivities?.some(({ lastStartedTime }) => lastStartedTime) ? performance.now() : 0;
      });
      const passed = async () => {
        answers.add((await ask('/healthz')).status);
        return performance.now() - began > withinMs + 8_000;
      };
      await until('the time for a poll has passed', passed, { timeoutMs: 60_000, everyMs: 500 });
    });
    expect([...answers]).toEqual([200]);
  });
});
