import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { failureTypes } from '../../contract/failures.ts';
import { taskQueues, workflowNames } from '../../contract/names.ts';
import { readStatus } from '../../db/read/status.ts';
import { readRunning } from '../../embedded/running.ts';
import { startEmbedded } from '../../embedded/start.ts';
import { temporalCache } from '../../embedded/temporal-binary.ts';
import { runCommand } from '../support/command.ts';
import { type RunningCommand, startCommand, withoutThreads } from '../support/command-process.ts';
import { deliver } from '../support/deliver.ts';
import { delivery } from '../support/events.ts';
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
  /** Starts a command that leaves its port to the next test, also when this one fails. */
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

  /** Signals a command twice, as npm and the terminal do, and expects it to drain within 10 s. */
  const drains = async (start: RunningCommand, signal: 'SIGTERM' | 'SIGINT') => {
    start.child.kill(signal);
    // Draining that takes longer than 9.5 s ends with status 1.
    expect(await start.end(signal), start.stderr()).toEqual({ status: 0, signal: null });
    expect(start.stdout()).toContain(`${signal}: draining; send it again to force the end`);
    expect(start.stdout()).toContain('"stopped"');
    await expect(fetch(`http://127.0.0.1:${pipeline.env.RECEIVER_PORT}/healthz`)).rejects.toThrow();
  };

  test("gives the worker next to the receiver a group's first task with the answer to its start, and drains on SIGTERM", async () => {
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
    // The answer came at once, without attempts for as long as the service waits.
    expect(start.stdout()).not.toMatch(/events not started yet|events given back/);

    const temporal = await startEmbedded({
      dir: folder.path,
      postgres: false,
      temporal: true,
    });
    onTestFinished(() => temporal.stop());
    expect(temporal.temporal?.address).toBe(address);
    await start.printed(/worker: running/);
    // An answer is kept for ten seconds.
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

    // It stops when asked to while it waits.
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

describe('the stand-ins of metersync start', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let start: RunningCommand;
  beforeAll(async () => {
    folder = await temporaryFolder();
    start = startCommand(['start', '--live', '120'], {
      cwd: folder.path,
      env: {
        ...withoutThreads,
        PATH: `${temporalCache()}:${process.env.PATH}`,
        RECEIVER_PORT: '0',
      },
    });
    await start.printed(/worker: running/, 90_000);
  }, 100_000);
  afterAll(async () => {
    await start?.end('SIGTERM');
    await folder.remove();
  });

  /** Asks the embedded warehouse. */
  async function ask<Row extends pg.QueryResultRow>(text: string, ...values: string[]): Promise<Row[]> {
    const { postgres } = readRunning(join(folder.path, '.metersync'))?.addresses ?? {};
    const db = new pg.Client({ ...postgres, host: '127.0.0.1', database: 'metersync' });
    await db.connect();
    const { rows } = await db.query<Row>(text, values);
    await db.end();
    return rows;
  }

  /** Waits until an event of --live is applied, and returns the id of its company. */
  const companyOfLiveChange = () =>
    until('live changes arrive', async () => {
      const [applied] = await ask<{ id: string }>(`select company_id::text as id from metersync.events
        where outcome = 'applied' and company_id is not null limit 1`);
      return applied?.id;
    });

  test('accept no event from other users, who do not have the key', { timeout: 60_000 }, async () => {
    const { temporal } = readRunning(join(folder.path, '.metersync'))?.addresses ?? {};
    const connection = await Connection.connect({ address: temporal?.address ?? '' });
    const event = delivery({ eventType: 'document.created.v2' });
    await new Client({ connection }).workflow.start(workflowNames.applyEvents, {
      workflowId: 'event/forged/1',
      taskQueue: taskQueues.events,
      args: [{ events: [event] }],
    });
    // The advice is logged once, however often the work is tried.
    await start.printed(/"code":"PAYLOAD_REFUSED","todo":".*temporal-codec-key/);
    await connection.close();
    await start.printed(/PAYLOAD_REFUSED.*event\/forged\/1|event\/forged\/1.*PAYLOAD_REFUSED/);
    expect(await ask('select from metersync.events where id = $1', event.id)).toEqual([]);
    // Events of --live are applied.
    await companyOfLiveChange();
  });

  test('give their key to a command in the same folder that names their address', {
    timeout: 60_000,
  }, async () => {
    const { temporal } = readRunning(join(folder.path, '.metersync'))?.addresses ?? {};
    const env = { PATH: `${temporalCache()}:${process.env.PATH}`, TEMPORAL_ADDRESS: temporal?.address ?? '' };
    // One company shows it as well as all of the sandbox's.
    const args = ['backfill', '--company', await companyOfLiveChange(), '--follow'];
    const run = await runCommand(args, { cwd: folder.path, env });
    expect(run, run.stderr).toMatchObject({ status: 0, stdout: expect.stringMatching(/: complete$/) });
    const said = start
      .stdout()
      .split('\n')
      .filter((line) => line.includes(`"todo":${JSON.stringify(failureTypes.PAYLOAD_REFUSED.operator)}`));
    expect(said).toHaveLength(1);
  });

  test('give no work to a command that names another Temporal', async () => {
    const env = { PATH: `${temporalCache()}:${process.env.PATH}`, TEMPORAL_ADDRESS: '127.0.0.1:1' };
    expect(await runCommand(['backfill', 'all'], { cwd: folder.path, env })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('Temporal at 127.0.0.1:1 (TEMPORAL_ADDRESS) does not answer'),
    });
  });

  test('keep secrets in private files', () => {
    const dir = join(folder.path, '.metersync');
    for (const name of ['temporal-codec-key', 'sandbox.json', 'running.json', 'temporal.db']) {
      expect((statSync(join(dir, name)).mode & 0o777).toString(8), name).toBe('600');
    }
    // Root's Postgres runs as an account of its own, which has to pass through.
    expect((statSync(dir).mode & 0o066).toString(8)).toBe('0');
    if (process.getuid?.() !== 0) return;
    const nobody = { uid: 65_534, gid: 65_534, cwd: '/', encoding: 'utf8' } as const;
    const read = `cat "${dir}/temporal-codec-key" "${dir}/sandbox.json" "${dir}/running.json" 2>&1 || true`;
    const said = execFileSync('/bin/sh', ['-c', read], nobody).trim().split('\n');
    expect(said).toEqual(Array.from({ length: 3 }, () => expect.stringContaining('Permission denied')));
  });
});
