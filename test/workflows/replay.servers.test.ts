import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import proto from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { workflowBundle as bundleOfToday } from '../../app/temporal/workflow-bundle.ts';
import { taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { holdCompany, waited } from '../support/held-company.ts';
import { outageOf } from '../support/outage.ts';
import { type Pipeline, type PipelineOptions, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const { History } = proto.temporal.api.history.v1;
const folder = fileURLToPath(new URL('./histories/', import.meta.url));
const types = Object.values(workflowNames).filter((type) => type !== workflowNames.catchUp);

/** What a long history must contain, because a short history never takes the same branches. */
const long: Partial<Record<(typeof types)[number], { events: number; endsWith?: string; holds?: string }>> = {
  backfillAll: { events: 60, endsWith: 'workflowExecutionContinuedAsNewEventAttributes' },
  // The company had so many meters that several activities read their intervals.
  backfillCompany: { events: 35 },
  reconcile: { events: 800, endsWith: 'workflowExecutionContinuedAsNewEventAttributes' },
};
/** The history of a run that waits for a company that another run reads. */
const turn = 'backfillAll.turn';
/** Histories of version 0.2, whose workflows may run during an update. They are never recorded again. */
const earlier = ['applyEvents', 'applyEvents.long', 'catchUp', 'catchUp.long', 'watch'].map(
  (name) => `${name}.0.2`,
);
const names = [...types, ...Object.keys(long).map((type) => `${type}.long`), turn, ...earlier];

/**
 * Replays histories of earlier code on the current code: a change that would break running workflows fails
 * here. After an intended one, `RECORD_HISTORIES=1 npm test -- test/workflows` records them again.
 */
describe('replay', () => {
  if (process.env.RECORD_HISTORIES === '1')
    describe('histories are recorded from real runs', () => {
      let running: Pipeline | undefined;
      const pipelineOf = async (options: PipelineOptions) => {
        running = await startPipeline(options);
        return running;
      };
      afterEach(() => running?.stop());

      test('short histories', { timeout: 120_000 }, async () => {
        const pipeline = await pipelineOf({});
        expect(await pipeline.backfill()).toBe('complete');
        // A single company has a workflow of its own.
        expect(await pipeline.backfill(await companiesOf(pipeline, 1))).toBe('complete');
        await pipeline.service.random(60, 11);
        await pipeline.settled();
        await execute(pipeline, workflowNames.watch, taskQueues.backfill);
        await execute(pipeline, workflowNames.dropPayloads, taskQueues.backfill);
        await execute(pipeline, workflowNames.reconcile, taskQueues.backfill, {});
        for (const type of types) await write(type, await longest(pipeline.client, type));
        await write(turn, await awaitingTurn(pipeline));
      });

      test('long histories', { timeout: 600_000 }, async () => {
        const pipeline = await pipelineOf({ size: { companies: 210, documents: 2 } });
        const { service } = pipeline;
        expect(await pipeline.backfill()).toBe('complete');
        await execute(pipeline, workflowNames.reconcile, taskQueues.backfill, {});
        await widen(pipeline);
        await pipeline.settled();
        expect(await pipeline.backfill()).toBe('complete');
        await service.control('POST', 'live', { perMinute: 3_000 });
        await setTimeout(60_000);
        await service.control('POST', 'live', { perMinute: 0 });
        await pipeline.settled(300_000);
        const outage = await outageOf(pipeline.warehouse.url);
        await outage.begin();
        await service.random(20, 7);
        await until('a group of events waits for the warehouse', () =>
          found(pipeline, `WorkflowType = 'applyEvents' and ExecutionStatus = 'Running'`),
        );
        await setTimeout(20_000);
        await outage.end();
        await outage.close();
        await pipeline.settled(300_000);
        for (const type of Object.keys(long))
          await write(`${type}.long`, await longest(pipeline.client, type));
      });
    });

  test('every workflow has a recorded history, and a long one if it can be long', () => {
    expect(readdirSync(folder).sort()).toEqual(names.map((name) => `${name}.history.pb.gz`).sort());
  });

  test.each(Object.entries(long))(
    'the long history of %s takes the branches of a long history',
    async (type, { events, endsWith, holds }) => {
      const all = (await read(`${type}.long`)).events ?? [];
      expect(all.length).toBeGreaterThanOrEqual(events);
      if (endsWith !== undefined) expect(all.at(-1)).toHaveProperty(endsWith);
      if (holds !== undefined) expect(all.some((event) => holds in event)).toBe(true);
    },
  );

  test('every recorded history replays on the current code', async () => {
    const workflowBundle = await bundleOfToday(pino({ level: 'silent' }));
    const histories = await Promise.all(
      names.map(async (name) => ({ workflowId: name, history: await read(name) })),
    );
    const failures: unknown[] = [];
    let replayed = 0;
    for await (const result of Worker.runReplayHistories({ workflowBundle }, histories)) {
      replayed += 1;
      if (result.error !== undefined) failures.push([result.workflowId, result.error]);
    }
    expect({ failures, replayed }).toEqual({ failures: [], replayed: names.length });
  });
});

const zip = promisify(gzip);
const unzip = promisify(gunzip);
const pathOf = (name: string): string => `${folder}${name}.history.pb.gz`;
const read = async (name: string) => History.decode(await unzip(readFileSync(pathOf(name))));
const write = async (name: string, history: Uint8Array) => writeFileSync(pathOf(name), await zip(history));

/** Gives a connection so many accounts that one activity cannot read all their intervals. */
async function widen({ service, warehouse }: Pipeline): Promise<void> {
  const { rows } = await warehouse.db.execute<{ connectionId: string; siteId: string }>(sql`
    select c.id as "connectionId", s.id as "siteId"
    from utility.connections c join utility.sites s on s.company_id = c.company_id order by c.id, s.id limit 1`);
  const [place] = rows;
  await service.change(...Array.from({ length: 130 }, () => ({ type: 'addAccount', ...place })));
}

async function found({ client }: Pipeline, query: string): Promise<true | undefined> {
  return (await client.workflow.count(query)).count > 0 ? true : undefined;
}

async function execute(
  { client }: Pipeline,
  type: string,
  taskQueue: string,
  ...args: unknown[]
): Promise<unknown> {
  return await client.workflow.execute(type, { workflowId: `recorded-${type}`, taskQueue, args });
}

async function companiesOf({ warehouse }: Pipeline, limit: number | null = null): Promise<string[]> {
  const { rows } = await warehouse.db.execute<{ id: string }>(
    sql`select id from utility.companies order by id limit ${limit}`,
  );
  return rows.map(({ id }) => id);
}

async function awaitingTurn(pipeline: Pipeline): Promise<Uint8Array> {
  const { client, warehouse } = pipeline;
  const ids = await companiesOf(pipeline);
  const held = await Promise.all(ids.map((id) => holdCompany(client, warehouse, id)));
  const runId = await startBackfill(client);
  await waited(client, runId, { looks: 2, companies: held.length });
  for (const company of held) await company.release();
  const handle = client.workflow.getHandle(workflowIds.backfillAll(runId));
  await handle.result();
  return History.encode(await handle.fetchHistory()).finish();
}

/** Returns the longest history of a type, which exercised most of the code, encoded as on the wire. */
async function longest(client: Client, type: string): Promise<Uint8Array> {
  const executions = await until(`a ${type} is listed`, async () => {
    const listed: WorkflowExecutionInfo[] = [];
    for await (const execution of client.workflow.list({ query: `WorkflowType = '${type}'` }))
      listed.push(execution);
    return listed.length > 0 ? listed : undefined;
  });
  // Open workflows have no length yet.
  executions.sort((a, b) => (b.historyLength || Infinity) - (a.historyLength || Infinity));
  const histories = await Promise.all(
    executions
      .slice(0, 5)
      .map(({ workflowId, runId }) => client.workflow.getHandle(workflowId, runId).fetchHistory()),
  );
  histories.sort((a, b) => (b.events?.length ?? 0) - (a.events?.length ?? 0));
  const [first] = histories;
  if (first === undefined) throw new Error(`no history of ${type}`);
  return History.encode(first).finish();
}
