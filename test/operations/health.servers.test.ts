import { X509Certificate } from 'node:crypto';
import { copyFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Worker } from '@temporalio/worker';
import { sql } from 'drizzle-orm';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { readSettings } from '../../app/settings/settings.ts';
import { connectClient, ensureOwnSchedules } from '../../app/temporal/client.ts';
import { taskQueues, workflowNames } from '../../contract/names.ts';
import { connectWarehouse, withTransaction } from '../../db/connection/connect.ts';
import { readHealth } from '../../db/read/health.ts';
import { verdictOf } from '../../health/verdict.ts';
import { healthOf } from '../../operations/health.ts';
import { startProxy } from '../faults/proxy.ts';
import { makeCertificate } from '../support/certificate.ts';
import { temporaryFolder } from '../support/folder.ts';
import { createNamespace } from '../support/namespace.ts';
import { connectExplained, nodesOf } from '../support/plans.ts';
import { until } from '../support/poll.ts';
import { openNamespace } from '../support/stub-worker.ts';
import { createWarehouse } from '../support/warehouse.ts';

const settings = readSettings({});

test('a Postgres that keeps connections open and does not answer counts as unreachable', {
  timeout: 40_000,
}, async () => {
  const warehouse = await createWarehouse();
  const deafened = await startProxy(warehouse.url);
  const { address: url } = deafened;
  const through = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  onTestFinished(async () => {
    await deafened.close();
    await through.close();
    await warehouse.drop();
  });
  const read = async (more: object = {}) =>
    await healthOf({ settings, databaseUrl: url, temporal: undefined, ...more })(through.db);
  expect((await read()).warehouse).not.toHaveProperty('away');
  deafened.deafen(true);
  expect(await read()).toMatchObject({
    warehouse: { away: expect.stringContaining('does not answer: no answer within 10 s') },
    schema: null,
  });
  const again = 'does not answer: no answer within 0 s, nor within 5 s when asked again';
  expect(await read({ answerMs: 100, again: true })).toMatchObject({
    warehouse: {
      away: expect.stringContaining(again),
      todo: expect.stringMatching(/^If Postgres is running/),
    },
  });
});

test('servers that miss the first answer and give a second answer are slow, and not away', async () => {
  const warehouse = await createWarehouse();
  // Nothing is connected yet, so no server can answer within a millisecond.
  const through = connectWarehouse({ url: warehouse.url, timeZone: 'UTC', max: 2, onError: () => {} });
  onTestFinished(async () => {
    await through.close();
    await warehouse.drop();
  });
  const temporal = { address: inject('temporalAddress'), namespace: await createNamespace() };
  const { url: databaseUrl } = warehouse;
  const read = healthOf({ settings, databaseUrl, temporal, answerMs: 1, again: true });
  const health = await read(through.db);
  expect(health).toMatchObject({ slow: ['Postgres', 'Temporal'], warehouse: { loaded: false } });
  expect(verdictOf(health).findings).toContainEqual(
    expect.objectContaining({ word: 'Catching up', brief: 'Postgres and Temporal answer slowly' }),
  );
});

test('a Postgres that answers and takes too long for its health is slow, and not down', {
  timeout: 40_000,
}, async () => {
  const { url: databaseUrl, db, drop } = await createWarehouse();
  onTestFinished(drop);
  const read = healthOf({ settings, databaseUrl, temporal: undefined });
  await withTransaction(db, async (tx) => {
    await tx.execute(sql`lock table metersync.journal in access exclusive mode`);
    const health = await read(db);
    expect(health).toMatchObject({
      warehouse: { away: expect.stringMatching(/ is slow: canceling statement due to statement timeout$/) },
      // It answered, so that metersync_warehouse_up is 1.
      schema: { known: expect.any(Number) },
    });
    expect(verdictOf(health).findings).toContainEqual(
      expect.objectContaining({ alarm: 'WarehouseDown', brief: 'Postgres is slow' }),
    );
  });
});

test('distinguishes a stopped watch from a watch that could not note its looks while Postgres was down', {
  timeout: 60_000,
}, async () => {
  const warehouse = await createWarehouse();
  const { client, ofWorker, close } = await openNamespace();
  onTestFinished(async () => {
    await close();
    await warehouse.drop();
  });
  const { db, url: databaseUrl } = warehouse;
  await db.execute(sql`insert into metersync.heartbeat (at) values (now() - interval '9 minutes')`);
  const temporal = { address: inject('temporalAddress'), namespace: ofWorker.namespace };
  const read = healthOf({ settings, databaseUrl, temporal });
  const verdict = async () => verdictOf(await read(db)).findings.find(({ name }) => name === 'watch')?.word;
  expect(await verdict()).toBe('Broken');
  const activities = {
    look: async () => ({ absence: 'Postgres does not answer' }),
    startSweep: async () => {},
    endLostRuns: async () => {},
    keepMonths: async () => 0,
  };
  const [workflows, looks] = await Promise.all(
    [taskQueues.backfill, taskQueues.watch].map((taskQueue) =>
      Worker.create({ ...ofWorker, taskQueue, activities }),
    ),
  );
  await workflows?.runUntil(async () => {
    await looks?.runUntil(async () => {
      await ensureOwnSchedules(client);
      await until('the watch ran', async () => (await verdict()) === 'Catching up', { timeoutMs: 50_000 });
    });
  });
  expect((await read(db)).temporal).toMatchObject({ foundAway: true });
});

test('counts a read-only Postgres as unreachable, but not a Postgres whose session asked to be read-only', async () => {
  const { url, db, drop } = await createWarehouse();
  onTestFinished(drop);
  const healthOver = async (session?: string) => {
    const through = connectWarehouse({ url, timeZone: 'UTC', max: 1, session, onError: () => {} });
    const read = healthOf({ settings, databaseUrl: url, temporal: undefined });
    return await read(through.db).finally(through.close);
  };
  expect((await healthOver('-c default_transaction_read_only=on')).warehouse).not.toHaveProperty('away');
  await db.execute(
    sql.raw(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`),
  );
  expect(await healthOver()).toMatchObject({
    warehouse: { away: expect.stringContaining('does not accept writes') },
    schema: null,
  });
});

test('a renewed client certificate does not count before a restart, because connections keep the old one', async () => {
  const [warehouse, folder] = await Promise.all([createWarehouse(), temporaryFolder()]);
  const names = 'DNS:localhost,IP:127.0.0.1';
  const [server, ours, renewed] = await Promise.all([
    makeCertificate(folder.path, 'server', names),
    makeCertificate(folder.path, 'ours', names),
    makeCertificate(folder.path, 'renewed', names, undefined, 90),
  ]);
  const [host, port] = inject('temporalAddress').split(':');
  const front = createTlsServer({ ...server, ALPNProtocols: ['h2'] }, (near) => {
    const far = connect(Number(port), host);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on('error', () => {});
  });
  await new Promise<void>((listening) => front.listen(0, '127.0.0.1', listening));
  onTestFinished(async () => {
    front.close();
    await Promise.all([warehouse.drop(), folder.remove()]);
  });
  vi.stubEnv('TEMPORAL_TLS_SERVER_CA_CERT_PATH', server.file);
  vi.stubEnv('TEMPORAL_TLS_CLIENT_CERT_PATH', ours.file);
  vi.stubEnv('TEMPORAL_TLS_CLIENT_KEY_PATH', ours.keyFile);
  const address = `127.0.0.1:${(front.address() as { port: number }).port}`;
  const temporal = { address, namespace: 'default' };
  const read = healthOf({ settings, databaseUrl: warehouse.url, temporal });
  await Promise.all([copyFile(renewed.file, ours.file), copyFile(renewed.keyFile, ours.keyFile)]);
  const expiresAt = new X509Certificate(ours.cert).validToDate.toISOString();
  expect((await read(warehouse.db)).temporal).toMatchObject({ certificate: { expiresAt } });
});

test('acknowledged events that nobody records are late after a minute and stalled after 15 minutes', async () => {
  const [warehouse, namespace] = await Promise.all([createWarehouse(), createNamespace()]);
  onTestFinished(warehouse.drop);
  const temporal = { address: inject('temporalAddress'), namespace };
  const { client, close } = await connectClient(temporal);
  onTestFinished(close);
  await client.workflow.start(workflowNames.applyEvents, {
    workflowId: 'group',
    taskQueue: taskQueues.events,
    args: [{ events: [] }],
  });
  const { db, url: databaseUrl } = warehouse;
  const read = (seconds: number) => {
    const now = async () => Date.now() + seconds * 1_000;
    return healthOf({ settings, databaseUrl, temporal, now })(db);
  };
  await until('Temporal lists the group', async () => {
    const { temporal: seen } = await read(0);
    return 'openGroups' in seen && seen.openGroups === 1;
  });
  const groups = { lateGroups: 0, stalledGroups: 0 };
  expect((await read(30)).temporal).toMatchObject(groups);
  expect((await read(90)).temporal).toMatchObject({ ...groups, lateGroups: 1 });
  expect((await read(901)).temporal).toMatchObject({ lateGroups: 1, stalledGroups: 1 });
  const judge = healthOf({ settings, databaseUrl, temporal });
  const fast = Date.now() + 901_000;
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => fast);
  onTestFinished(() => clock.mockRestore());
  expect((await judge(db)).temporal, 'by a clock that runs fast').toMatchObject({ openGroups: 1, ...groups });
});

test('reads no readings, so its cost does not depend on their number', async () => {
  const { url, db, drop } = await createWarehouse();
  onTestFinished(drop);
  await db.execute(sql`select metersync.ensure_interval_month('2026-01-01T00:00:00Z')`);
  const explained = connectExplained(url);
  onTestFinished(() => explained.close());
  const read = async (work: () => Promise<unknown>) =>
    (await explained.plansOf(work))
      .flatMap(({ plan }) => nodesOf(plan))
      .map((node) => node['Relation Name'] ?? '');
  const isOfReadings = (table: string) => /^intervals(_\d{4}_\d{2})?$/.test(table);
  const ofHealth = await read(() => readHealth(explained.db, { silenceHours: 24 }));
  expect(ofHealth).toContain('runs');
  expect(ofHealth.filter(isOfReadings)).toEqual([]);
  const ofReadings = await read(() => explained.db.execute(sql`select count(*) from utility.intervals`));
  expect(ofReadings.some(isOfReadings)).toBe(true);
});
