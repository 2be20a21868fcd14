import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { createDoor } from '../service/door.ts';
import { pageOf } from '../service/listing.ts';
import { ScriptedServer } from '../service/scripted-server.ts';
import { startCommand } from '../support/command-process.ts';
import { createDeployment } from '../support/deployment.ts';
import { until } from '../support/poll.ts';
import { documents, shapeOf } from '../support/scripted-service.ts';

test('two worker processes never have more requests in flight than the one limit', {
  timeout: 120_000,
}, async () => {
  const companies = Array.from({ length: 40 }, () => ({ id: randomUUID() }));
  const held = new Map<string, object[]>(companies.map(({ id }) => [id, documents(300)]));
  const door = createDoor();
  const service = await ScriptedServer.start(async (asked) => {
    if (asked.path === '/v2.2/company') return { json: companies };
    await door.pass();
    return pageOf(held.get(asked.path.split('/').at(-1) ?? '') ?? [], asked, shapeOf('connections'));
  });
  onTestFinished(() => service.stop());
  const deployment = await createDeployment({
    env: { SERVICE_URL: service.url, SERVICE_API_KEY: 'key', SERVICE_MAX_CONCURRENCY: '2' },
    endpoints: { meters: null, documents: null, usageData: null, intervals: null },
  });
  onTestFinished(() => deployment.stop());
  const { warehouse } = deployment;
  await deployment.run('worker');
  await deployment.start('worker');

  const workers = async () =>
    (await warehouse.db.execute(sql`select *, now() as now from metersync.service_workers`)).rows;
  await until('both are noted', async () => (await workers()).length === 2);
  const runs: Promise<unknown>[] = [];
  const read = () => runs.push(deployment.backfill([companies[runs.length]?.id ?? '']));
  while (runs.length < 8) read();
  await until('eight companies are being read', async () => {
    const { rows } = await warehouse.db.execute<{ n: number }>(sql`
      select count(*)::int as n from metersync.runs where resource = 'connections' and state = 'running'`);
    return rows[0]?.n === 8;
  });
  // Temporal may give all of them to one worker: more are started until the other has one too.
  await until(
    'as many requests as the limit allows are at the door',
    async () => {
      if (door.waiting === 2) return true;
      read();
      const said = deployment.part('worker').stdout();
      throw new Error(`${door.waiting} at the door; ${JSON.stringify(await workers())}; ${said}`);
    },
    { everyMs: 1_000, timeoutMs: 30_000 },
  );
  door.open();
  await Promise.all(runs);
  expect(service.inFlightMax).toBe(2);
  expect(service.asked.length).toBeGreaterThan(8);
});

test('an audit shares the limit while it reads, and then leaves it', { timeout: 120_000 }, async () => {
  const company = { id: randomUUID() };
  const door = createDoor();
  const service = await ScriptedServer.start(async (asked) => {
    if (asked.path === '/v2.2/company') return { json: [company] };
    await door.pass();
    return pageOf([], asked, shapeOf('connections'));
  });
  onTestFinished(() => service.stop());
  const deployment = await createDeployment({
    env: { SERVICE_URL: service.url, SERVICE_API_KEY: 'key' },
    endpoints: { meters: null, documents: null, usageData: null, intervals: null },
  });
  onTestFinished(() => deployment.stop());
  const members = async () =>
    (
      await deployment.warehouse.db.execute<{ n: number }>(
        sql`select count(*)::int as n from metersync.service_workers`,
      )
    ).rows[0]?.n;
  const audit = startCommand(['audit', '--settle', '0s', '--json'], { env: deployment.env });
  onTestFinished(async () => void (await audit.end('SIGKILL')));
  await until('it reads', () => door.waiting === 1);
  expect(await members()).toBe(1);
  door.open();
  // The company is not in the warehouse: one difference.
  expect((await audit.ended).status).toBe(1);
  expect(await members()).toBe(0);
});
