import { type SQL, sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { workflowIds } from '../../contract/names.ts';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import { outageOf } from '../support/outage.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const pipeline = await forFile(
  startPipeline({ size: { companies: 2, documents: 250, intervalDays: 1 }, parts: [] }),
);
await Promise.all([pipeline.start('worker'), pipeline.start('receiver')]);

const count = async (query: SQL): Promise<number> =>
  Number((await pipeline.warehouse.db.execute<{ n: string }>(query)).rows[0]?.n);
const documentsRead = () => count(sql`select count(*) as n from utility.documents where raw is not null`);
const journalled = () => count(sql`select count(*) as n from metersync.events`);
/** Counts the worker's statements that wait for the table of documents. */
const waitingFor = (statement: string) =>
  count(sql`select count(*) as n from pg_stat_activity where datname = current_database()
    and wait_event_type = 'Lock' and query like ${`%${statement}%`}`);
const noDifferences = { differences: 0, examples: [] };

test('nothing is lost if a worker is killed between two pages and in the middle of a group', {
  timeout: 180_000,
}, async () => {
  const { service, warehouse, client } = pipeline;
  await service.fault({ kind: 'latency', path: '/document/company', ms: [150, 150] });
  const runId = await startBackfill(client);
  await until('the first page of documents is written', documentsRead);

  // The next page and the group of events now wait in the middle of their transactions.
  await warehouse.db.transaction(async (tx) => {
    await tx.execute(sql`lock table utility.documents in exclusive mode`);
    await service.random(60, 1, ['createDocument', 'deleteDocument']);
    await until('a page waits', () => waitingFor('jsonb_array_elements'));
    await until('a group waits', () => waitingFor('hint_event_id'));
    await pipeline.part('worker').end('SIGKILL');
  });
  const { documents } = await service.status();
  expect(await documentsRead()).toSatisfy((read: number) => read > 0 && read < documents);
  expect(await journalled()).toBe(0);

  await service.clearFaults();
  await pipeline.start('worker');
  expect(await client.workflow.getHandle(workflowIds.backfill(runId)).result()).toBe('complete');
  await pipeline.settled();
  expect(await journalled()).toBeGreaterThanOrEqual(60);
  expect(await pipeline.audit()).toMatchObject(noDifferences);
});

test('events are acknowledged while the warehouse is down, and are applied when it is up again', {
  timeout: 120_000,
}, async () => {
  const { service } = pipeline;
  const outage = await outageOf(pipeline.warehouse.url);
  const before = (await service.status()).deliveries.delivered;
  try {
    await outage.begin();
    const fired = await service.random(cases(60, 150), 3);
    await until('everything is acknowledged', async () => (await service.status()).quiet);
    expect((await service.status()).deliveries.delivered).toBe(before + fired);
    await expect(journalled()).rejects.toThrow();
    expect(pipeline.part('worker').child.exitCode).toBeNull();
  } finally {
    await outage.end();
    await outage.close();
  }
  await pipeline.settled();
  expect(await pipeline.audit()).toMatchObject(noDifferences);
});

test('nothing is lost if connections to the warehouse are cut during a backfill and events', {
  timeout: 120_000,
}, async () => {
  const { service, client } = pipeline;
  const outage = await outageOf(pipeline.warehouse.url);
  const runId = await startBackfill(client);
  await service.disturb({ delayMs: [0, 2_000], duplicate: 0.2 });
  await service.random(cases(80, 200), 4);
  let cuts = 0;
  const cutOften = async () => {
    if ((await outage.cut()) > 0) cuts += 1;
    return cuts >= 5;
  };
  await until('connections were cut five times', cutOften, { timeoutMs: 60_000, everyMs: 100 });
  expect(pipeline.part('worker').child.exitCode).toBeNull();
  await outage.close();
  expect(await client.workflow.getHandle(workflowIds.backfill(runId)).result()).toBe('complete');
  await pipeline.settled();
  expect(await pipeline.audit()).toMatchObject(noDifferences);
});
