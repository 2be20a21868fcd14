import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, expect, test } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { type RunState, taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { chooseCompanies } from '../../db/backfill/run-companies.ts';
import { readStatus } from '../../db/read/status.ts';
import { createDoor } from '../service/door.ts';
import { pageOf } from '../service/listing.ts';
import { ScriptedServer } from '../service/scripted-server.ts';
import { runCommand } from '../support/command.ts';
import { createDeployment } from '../support/deployment.ts';
import { until } from '../support/poll.ts';
import { pauseWatch } from '../support/watch.ts';

const companies = Array.from({ length: 5 }, () => ({ id: randomUUID() }));
const [held, alsoHeld, denied] = [randomUUID(), randomUUID(), randomUUID()];

/** Requests about the held companies wait at this door. */
const door = createDoor();
const listed = [...companies, ...[held, alsoHeld, denied].map((id) => ({ id }))];
const service = await ScriptedServer.start(async (asked) => {
  if (asked.path === '/v2.2/company') return { json: listed };
  const id = asked.path.split('/').at(-1) ?? '';
  if (id === held || id === alsoHeld) await door.pass();
  if (id === denied) return { status: 403, json: {} };
  if (!listed.some((company) => company.id === id)) return { status: 404, json: {} };
  return pageOf([{ id, company: { id } }], asked);
});
const deployment = await createDeployment({
  env: { SERVICE_URL: service.url, SERVICE_API_KEY: 'key' },
  endpoints: { connections: null, meters: null, usageData: null, documentUsage: null, intervals: null },
});
await deployment.run('worker');
// The test itself decides when the watch looks.
await pauseWatch(deployment.client);
afterAll(async () => {
  door.open();
  await deployment.stop();
  await service.stop();
});

interface Run extends Record<string, unknown> {
  readonly state: RunState;
  readonly error: string | null;
  readonly workflowId: string;
  readonly partsRunning: number;
  readonly readsCompany: boolean;
}

/** Reads the row of a run, the number of its running parts, and whether one of them is of a company. */
async function runOf(runId: string): Promise<Run | undefined> {
  const { rows } = await deployment.warehouse.db.execute<Run>(sql`
    select state, error, workflow_id as "workflowId",
      (select count(*)::int from metersync.runs part
        where part.run_id = whole.run_id and resource is not null and finished_at is null) as "partsRunning",
      exists (select from metersync.runs part
        where part.run_id = whole.run_id and company_id is not null and finished_at is null) as "readsCompany"
    from metersync.runs whole
    where run_id = ${runId}::uuid and company_id is null and resource is null`);
  return rows[0];
}

/** Does what a schedule does once a minute. */
const look = (): Promise<unknown> =>
  deployment.client.workflow.execute(workflowNames.watch, {
    workflowId: `look/${randomUUID()}`,
    taskQueue: taskQueues.backfill,
    args: [],
  });

const choose = (...ids: readonly string[]) => ({ db: deployment.warehouse.db, companies: ids });
const handleOf = (runId: string) => deployment.client.workflow.getHandle(workflowIds.backfill(runId));

const isReading = (runId: string) =>
  until('the company is being read', async () => (await runOf(runId))?.readsCompany);

test('a run whose workflow was ended in Temporal fails together with its parts, and other runs continue', {
  timeout: 120_000,
}, async () => {
  const { client, warehouse } = deployment;
  const timedOut = randomUUID();
  await chooseCompanies(warehouse.db, timedOut, [companies[0]?.id ?? '', alsoHeld]);
  await client.workflow.start(workflowNames.backfill, {
    workflowId: workflowIds.backfill(timedOut),
    taskQueue: taskQueues.backfill,
    args: [{ runId: timedOut }],
    workflowExecutionTimeout: '10 seconds',
  });
  const terminated = await startBackfill(client, choose(held));
  await isReading(terminated);
  await handleOf(terminated).terminate('an operator');
  await isReading(timedOut);
  await expect(handleOf(timedOut).result()).rejects.toThrow();
  const gone = randomUUID();
  await warehouse.db.execute(sql`insert into metersync.runs (run_id, state, workflow_id)
    values (${gone}::uuid, 'running', 'backfill-run/of-a-namespace-that-was-lost')`);
  const goesOn = await startBackfill(client, choose(held));
  await until('it goes on', async () => (await runOf(goesOn))?.state === 'running');
  expect((await readStatus(warehouse.db)).backfills.running).toBe(4);

  await look();
  const failed = { state: 'failed', partsRunning: 0 };
  expect(await runOf(terminated)).toMatchObject({ ...failed, error: 'terminated' });
  expect(await runOf(timedOut)).toMatchObject({ ...failed, error: 'timed out' });
  expect(await runOf(gone)).toMatchObject({ ...failed, error: 'gone' });
  expect(await runOf(goesOn)).toMatchObject({ state: 'running', error: null });
  const seen = await runCommand(['backfill', '--run', terminated], { env: deployment.env });
  expect(seen.status).toBe(1);
  expect(seen.stdout.split('\n')).toEqual([
    `backfill ${terminated}: failed: terminated`,
    expect.stringMatching(/^ {2}failed: \S+ documents: /),
  ]);

  await handleOf(goesOn).cancel();
  await expect(handleOf(goesOn).result()).rejects.toThrow();
  expect(await runOf(goesOn)).toMatchObject({ ...failed, error: 'cancelled' });
  // Reads of a run of chosen companies have precedence over reads of runs of all companies.
  expect((await handleOf(goesOn).describe()).priority).toMatchObject({ priorityKey: 1 });
});

test('the size of a workflow does not grow with the number of companies that are chosen for a run', {
  timeout: 120_000,
}, async () => {
  const { client } = deployment;
  const unknown = (count: number) => Array.from({ length: count }, () => randomUUID());
  const many = unknown(20_000).toSorted();
  const runId = await startBackfill(client, choose(...many));
  await until('the service is asked about them', () =>
    service.asked.some(({ path }) => path.includes(many[0] ?? '')),
  );
  await handleOf(runId).terminate('seen');
  const { historySize = 0 } = await handleOf(runId).describe();
  expect(historySize).toBeLessThan(10_000);

  const chosenRun = await startBackfill(client, choose(...companies.map(({ id }) => id), ...unknown(295)));
  expect(await handleOf(chosenRun).result()).toBe('complete');
  expect((await runOf(chosenRun))?.error).toMatch(
    /^SERVICE_NOT_FOUND: the service does not have 295 of the companies chosen: (\S+, ){5}…/,
  );
  expect((await handleOf(chosenRun).describe()).historySize).toBeLessThan(30_000);
});

test('a run that cannot read anything of its companies fails', async () => {
  expect(await deployment.backfill([denied])).toBe('failed');
  expect(await deployment.backfill([denied, companies[0]?.id ?? ''])).toBe('partial');
});

test('a run names its workflow, even if a schedule started it', async () => {
  const { client, warehouse } = deployment;
  const workflowId = `${workflowIds.backfill('scheduled')}-2026-11-22T03:00:00Z`;
  door.open();
  await client.workflow.execute(workflowNames.backfill, {
    workflowId,
    taskQueue: taskQueues.backfill,
    args: [],
  });
  const { last } = (await readStatus(warehouse.db)).backfills;
  expect(await runOf(last?.runId ?? '')).toMatchObject({ workflowId, state: 'partial' });
});

test('a run whose checks are already running, for example after a reset in Temporal, still ends', async () => {
  const { client } = deployment;
  const runs = [
    [workflowNames.backfillUpdates, workflowIds.reconcile],
    [workflowNames.backfill, workflowIds.backfill],
  ] as const;
  door.open();
  for (const [type, idOf] of runs) {
    const runId = randomUUID();
    await client.workflow.start(workflowNames.checkData, {
      workflowId: workflowIds.checkData(runId),
      taskQueue: 'nobody-listens',
      args: [{ runId, kinds: [] }],
    });
    const options = { workflowId: idOf(runId), taskQueue: taskQueues.backfill, args: [{ runId }] };
    expect(await client.workflow.execute(type, options)).toBe((await runOf(runId))?.state);
  }
});
