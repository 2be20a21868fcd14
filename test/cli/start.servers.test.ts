import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readStatus } from '../../db/read/status.ts';
import { startEmbedded } from '../../embedded/start.ts';
import { type RunningCommand, startCommand, withoutThreads } from '../support/command-process.ts';
import { deliver } from '../support/deliver.ts';
import { temporaryFolder } from '../support/folder.ts';
import { outageOf } from '../support/outage.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';

describe('metersync start on servers of the user', () => {
  let pipeline: Pipeline;
  beforeAll(async () => {
    pipeline = await startPipeline({ size: { companies: 1, documents: 5, intervalDays: 1 }, parts: [] });
  });
  afterAll(() => pipeline?.stop());
  /** Starts a command and ends it after the test, even if that fails, so that the next test gets its port. */
  const startUntilFinished = (command: 'start' | 'worker', env: Readonly<Record<string, string>> = {}) => {
    const started = startCommand([command], { env: { ...pipeline.env, ...env } });
    onTestFinished(async () => void (await started.end('SIGKILL')));
    return started;
  };
  const begin = async (env: Readonly<Record<string, string>> = withoutThreads) => {
    const start = startUntilFinished('start', env);
    await start.printed(/receiver: POST /);
    return start;
  };
  const settled = async () => {
    await pipeline.settled();
    expect((await readStatus(pipeline.warehouse.db)).events).toMatchObject({ pending: 0, dead: 0 });
  };

  /** Signals a command twice, as npm and the terminal do together, and expects it to drain within 10 s. */
  const drains = async (start: RunningCommand, signal: 'SIGTERM' | 'SIGINT') => {
    start.child.kill(signal);
    // Draining that takes longer than 9.5 s ends with status 1.
    expect(await start.end(signal), start.stderr()).toEqual({ status: 0, signal: null });
    expect(start.stdout()).toContain(`${signal}: draining; send it again to force the end`);
    expect(start.stdout()).toContain('"stopped"');
    await expect(fetch(`http://127.0.0.1:${pipeline.env.RECEIVER_PORT}/healthz`)).rejects.toThrow();
  };

  test("its worker gets the first task of a group with the answer to the receiver's start, and it drains on SIGTERM", async () => {
    const start = await begin({});
    const { id } = await deliver(pipeline, { eventType: 'weather.changed' });
    const { rows } = await until('the event is in the journal', async () => {
      const kept = await pipeline.warehouse.db.execute<{ workflow_id: string }>(
        sql`select workflow_id from metersync.events where id = ${id}`,
      );
      return kept.rowCount === 1 ? kept : undefined;
    });
    const { events } = await pipeline.client.workflow.getHandle(rows[0]?.workflow_id ?? '').fetchHistory();
    const started = events?.[0]?.workflowExecutionStartedEventAttributes;
    expect(started?.eagerExecutionAccepted).toBe(true);
    await drains(start, 'SIGTERM');
  });

  test('answers 503 and waits while Temporal is down, and accepts deliveries when Temporal is up', {
    timeout: 120_000,
  }, async () => {
    const [folder, port] = await Promise.all([temporaryFolder(), freePort()]);
    onTestFinished(() => folder.remove());
    await writeFile(join(folder.path, 'ports.json'), JSON.stringify({ temporal: port }));
    const address = `127.0.0.1:${port}`;
    const start = startUntilFinished('start', {
      ...withoutThreads,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: 'default',
    });
    await start.printed(/receiver: POST /);
    const health = async (path: string) =>
      (await fetch(`http://127.0.0.1:${pipeline.env.RECEIVER_PORT}${path}`)).status;
    expect([await health('/healthz'), await health('/readyz')]).toEqual([200, 503]);
    const event = { eventType: 'weather.changed' };
    const { id, status } = await deliver(pipeline, event);
    expect(status).toBe(503);
    // The answer came at once. The receiver did not try for as long as the service waits.
    expect(start.stdout()).not.toMatch(/events not started yet|events could not be stored/);

    const temporal = await startEmbedded({
      dir: folder.path,
      postgres: false,
      temporal: true,
    });
    onTestFinished(() => temporal.stop());
    expect(temporal.temporal?.address).toBe(address);
    await start.printed(/worker: running/);
    // An answer about readiness is reused for up to ten seconds.
    await until('it says that it is ready', async () => (await health('/readyz')) === 200);
    expect(await deliver(pipeline, event, id)).toEqual({ id, status: 204 });
    await until('the event is in the journal', async () => {
      const kept = await pipeline.warehouse.db.execute(sql`select from metersync.events where id = ${id}`);
      return kept.rowCount === 1;
    });
    const said = (what: string) =>
      start
        .stdout()
        .split('\n')
        .filter((line) => line.includes(what)).length;
    expect([said(' does not answer: waiting for it'), said(' answers now')]).toEqual([1, 1]);
    expect(said('No workflows registered')).toBe(0);
    expect(await start.end('SIGTERM')).toEqual({ status: 0, signal: null });
  });

  test('accepts deliveries while Postgres is down, applies them when Postgres is up, and drains on SIGINT', {
    timeout: 120_000,
  }, async () => {
    const outage = await outageOf(pipeline.env.DATABASE_URL ?? '');
    onTestFinished(() => outage.close());
    await outage.begin();
    const start = startUntilFinished('start');
    await start.printed(/receiver: POST /);
    expect(start.stdout()).toMatch(/Postgres at .*waiting for it; meanwhile events are accepted/);
    expect(start.stdout()).not.toContain('worker: running');
    const { id, status } = await deliver(pipeline, { eventType: 'weather.changed' });
    expect(status).toBe(204);
    await outage.end();
    await start.printed(/the warehouse answers now/);
    await until('the event is in the journal', async () => {
      const kept = await pipeline.warehouse.db.execute(sql`select from metersync.events where id = ${id}`);
      return kept.rowCount === 1;
    });
    await drains(start, 'SIGINT');

    // A worker that waits for Postgres stops when it is asked to.
    await outage.begin();
    const worker = startUntilFinished('worker');
    await worker.printed(/waiting for it; meanwhile events are accepted/);
    expect(await worker.end('SIGTERM')).toEqual({ status: 0, signal: null });
    await outage.end();
  });

  test('ends at once after a second signal, and the next start does the interrupted work', {
    timeout: 120_000,
  }, async () => {
    const { service, warehouse } = pipeline;
    const start = await begin();
    await warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`lock table utility.documents in exclusive mode`);
      await service.random(5, 1, ['createDocument']);
      await until('a group of events waits for the table', async () => {
        const waiting = await warehouse.db.execute<{ n: number }>(sql`select count(*)::int as n
          from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
        return waiting.rows[0]?.n;
      });
      start.child.kill('SIGTERM');
      await start.printed(/draining; send it again to force the end/);
      const signalledAt = performance.now();
      await until('it is no longer the same signal', () => performance.now() - signalledAt > 1_000);
      expect(await start.end('SIGTERM')).toEqual({ status: 1, signal: null });
      expect(start.stdout()).not.toContain('"stopped"');
    });
    await begin();
    await settled();
  });
});
