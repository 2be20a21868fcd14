import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scheduleIds, taskQueues, workflowNames } from '../../contract/names.ts';
import { startAlertmanager, type TestAlertmanager } from '../support/alertmanager.ts';
import { type Collector, startCollector } from '../support/collector.ts';
import { runCommand } from '../support/command.ts';
import { createDeployment, type Deployment } from '../support/deployment.ts';
import { until } from '../support/poll.ts';

/** Until it is opened, requests to Alertmanager are passed on and not answered. */
let door: Promise<void> | undefined;
let jsonAnswers = 200;
let collector: Collector;
let manager: TestAlertmanager;
let deployment: Deployment;

beforeAll(async () => {
  collector = await startCollector(async ({ path, method, body }) => {
    if (!path.startsWith('/api/')) return path === '/json' ? jsonAnswers : 200;
    const headers = { 'content-type': 'application/json' };
    const { status } = await fetch(`${manager.url}${path}`, { method, headers, body });
    await door;
    return status;
  });
  manager = await startAlertmanager(`${collector.url}/alarms`);
  deployment = await createDeployment({
    env: {
      // Nothing asks the service here.
      SERVICE_URL: `${collector.url}/v2.2`,
      SERVICE_API_KEY: 'key',
      NOTIFY_URLS: `alertmanager+${collector.url}, json+${collector.url}/json`,
      NOTIFY_SECRET: `whsec_${Buffer.from('a secret of twenty-four bytes').toString('base64')}`,
      HEARTBEAT_URL: `${collector.url}/beat`,
    },
  });
  await deployment.start('worker');
});
afterAll(async () => {
  await deployment?.stop();
  await manager?.stop();
  await collector?.stop();
});

const startLook = () =>
  deployment.client.workflow.start(workflowNames.watch, {
    workflowId: `look/${randomUUID()}`,
    taskQueue: taskQueues.backfill,
    args: [],
  });
const look = async (): Promise<unknown> => (await startLook()).result();
const runId = randomUUID();
const setRun = (state: string) =>
  deployment.warehouse.db.execute(sql`
    insert into metersync.runs (run_id, state, finished_at) values (${runId}::uuid, ${state}, now())
    on conflict (run_id, company_id, resource) do update set state = excluded.state`);
/** What Alertmanager reported of an alarm: its statuses, in order. */
const statesOf = (alert: string): string[] =>
  collector
    .bodies('/alarms')
    .flatMap(({ alerts }) => alerts)
    .filter(({ labels }) => labels.alertname === `Metersync${alert}`)
    .map(({ status }) => status);

test('a worker looks as soon as it starts, and calls the dead man’s switch', {
  timeout: 60_000,
}, async () => {
  await until('it has looked', () => collector.got.some(({ path }) => path === '/beat'));
  const { stdout } = await runCommand(['alerts', 'list'], { env: deployment.env });
  expect(stdout).toMatch(/^No alarm is open\.\nlast watch: \S+ \S+ \(\d+ s ago\)$/);
  // Each minute's look would add an attempt to what a target refused.
  await deployment.client.schedule.getHandle(scheduleIds.watch).pause();
});

test('an alarm is reported once when it opens and once when it is over, also when its worker is killed between sending and marking', {
  timeout: 120_000,
}, async () => {
  const opened = Promise.withResolvers<void>();
  door = opened.promise;
  await setRun('failed');
  const killed = await startLook();
  const posts = () => collector.got.filter(({ path }) => path.startsWith('/api/')).length;
  await until('Alertmanager has it', () => posts() === 1);
  await until('the other target has marked it', async () => {
    const { rows } = await deployment.warehouse.db.execute(
      sql`select from metersync.notifications where sent_at is not null`,
    );
    return rows.length === 1;
  });
  await deployment.part('worker').end('SIGKILL');
  // Its look would be tried again 40 s later.
  await killed.terminate();
  opened.resolve();
  await deployment.run('worker');
  await look();
  await until('it is sent again', () => posts() === 2);
  const [one, again] = collector.got.filter(({ path }) => path.startsWith('/api/'));
  expect(again?.body).toBe(one?.body);
  await setRun('complete');
  await look();
  await until('it is resolved', () => statesOf('RunUnwell').includes('resolved'));
  await look();
  expect(statesOf('RunUnwell')).toEqual(['firing', 'resolved']);
  const ids = collector.got
    .filter(({ path }) => path === '/json')
    .map(({ headers }) => headers['webhook-id']);
  expect(new Set(ids).size).toBe(2);
  expect(ids.length).toBe(2);
});

test('metersync alerts list shows what is open, since when, and that its targets took it', async () => {
  await setRun('partial');
  await look();
  const list = async (...args: string[]) =>
    JSON.parse((await runCommand(['alerts', 'list', '--json', ...args], { env: deployment.env })).stdout);
  const { alerts, targets } = await list();
  expect(alerts).toEqual([
    expect.objectContaining({ name: 'RunUnwell', severity: 'ticket', error: null, closedAt: null }),
  ]);
  expect(alerts[0].notifiedAt).not.toBeNull();
  expect(targets.map(({ error }: { error: string | null }) => error)).toEqual([null, null]);
  expect((await list('--closed')).alerts).toHaveLength(1);
  await setRun('complete');
  await look();
});

test('metersync notify test takes the way of an alarm, and says what each target answered', async () => {
  const run = await runCommand(['notify', 'test'], { env: deployment.env });
  expect(run).toMatchObject({ status: 0 });
  expect(run.stdout).toMatch(/^alertmanager [\d.:]+ \w{6}: taken\njson [\d.:]+ \w{6}: taken$/);
  const tests = collector.bodies('/json').flatMap(({ data }) => data.alerts);
  expect(tests.at(-1)).toMatchObject({ change: 'test', alert: 'Test' });

  jsonAnswers = 404;
  const refused = await runCommand(['notify', 'test', '--json'], { env: deployment.env });
  expect(refused.status).toBe(1);
  expect(JSON.parse(refused.stdout).targets).toEqual([
    expect.objectContaining({ attempts: 1, error: null }),
    expect.objectContaining({ attempts: 1, sentAt: null, error: 'it answered 404: secret … said\\0' }),
  ]);
  jsonAnswers = 200;
});

test('Alertmanager keeps back what another alarm explains', async () => {
  const post = async (...names: string[]) => {
    const body = JSON.stringify(
      names.map((name) => ({ labels: { alertname: `Metersync${name}`, severity: 'page' } })),
    );
    const headers = { 'content-type': 'application/json' };
    await fetch(`${manager.url}/api/v2/alerts`, { method: 'POST', headers, body });
  };
  await post('EventsStalled', 'HeartbeatStopped', 'Silent', 'WarehouseDown');
  const inhibited = await until('the two are kept back', async () => {
    const all = await manager.alerts();
    const names = all
      .filter(({ status }) => status.inhibitedBy.length > 0)
      .map(({ labels }) => labels.alertname)
      .toSorted();
    return names.length === 2 ? names : undefined;
  });
  expect(inhibited).toEqual(['MetersyncEventsStalled', 'MetersyncHeartbeatStopped']);
});
