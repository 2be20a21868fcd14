import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { readSettings } from '../../app/settings/settings.ts';
import { connectClient } from '../../app/temporal/client.ts';
import { applySchedules, readSchedule } from '../../app/temporal/schedules.ts';
import { taskQueues, workflowNames } from '../../contract/names.ts';
import { monitorPolicy, serverWaits } from '../../contract/retry-policy.ts';
import { writeRunning } from '../../embedded/folder.ts';
import { identify } from '../../embedded/process.ts';
import { startProxy } from '../faults/proxy.ts';
import { runCommand } from '../support/command.ts';
import { cookieOf, serveConsole } from '../support/console.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { createNamespace } from '../support/namespace.ts';
import { until } from '../support/poll.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** In these tests servers accept connections and do not answer, as if a process or a disk were hanging. */

const warehouse = await forFile(createWarehouse());
const folder = await forFile(temporaryFolder());
const deafened = await forFile(startProxy(warehouse.url));
const temporal = { address: inject('temporalAddress'), namespace: await createNamespace() };
const env = {
  METERSYNC_DIR: folder.path,
  DATABASE_URL: deafened.address,
  TEMPORAL_ADDRESS: temporal.address,
  TEMPORAL_NAMESPACE: temporal.namespace,
  SERVICE_URL: 'http://127.0.0.1:9/v2.2',
  SERVICE_API_KEY: 'geheim-key',
  METERSYNC_ACTOR: 'ada',
};
const { client, close } = await connectClient(temporal);
await applySchedules(client, readSettings({}).schedules);
await close();
const running = await forFile(serveConsole(env, { databaseUrl: deafened.address, temporal }));
const { host, pathname } = new URL(deafened.address);
const sentence = `Postgres at ${host}${pathname} (DATABASE_URL) does not answer: no answer within 2 s`;
/** What commands say, which ask again. */
const asked = `${sentence}, nor within 5 s when asked again`;
const whatToDo =
  'What to do: If Postgres is running, look at its load and its network, and try again. Otherwise start Postgres, or correct DATABASE_URL.';
// Afterwards its pools have connections, which fall silent, too.
const cookie = await cookieOf(running);
const ask = (path: string) => fetch(running.url + path, { headers: { cookie } });
for (const path of ['/', '/runs', '/events']) expect((await ask(path)).status).toBe(200);
deafened.deafen(true);
const frozenTemporal = await forFile(startProxy(temporal.address));
frozenTemporal.deafen(true);

const id = '5bd6ce54-0d8e-4c40-9b4b-1f1e8ab4f0aa';

describe('without Postgres, every command says the same sentence', () => {
  test.each([[['events', 'list']], [['backfill', 'all']], [['migrate', '--plan']]])(
    'in metersync %j',
    async (args) => {
      expect(await runCommand(args, { env })).toEqual({
        status: 1,
        stdout: '',
        stderr: `metersync: ${asked}\n${whatToDo}`,
      });
    },
  );

  test('in trace, together with what Temporal knows about the record', async () => {
    const { client, close } = await connectClient(temporal);
    const event = (name: string, record: string) => ({
      id: name,
      timestamp: 1,
      receivedAt: '2026-11-22T01:10:00.000Z',
      body: JSON.stringify({
        eventType: 'document.updated.v2',
        id: record,
        company: { id },
        updated: '2026-11-22T01:00:00.000Z',
      }),
    });
    await client.workflow.start(workflowNames.applyEvents, {
      workflowId: 'events/one+1/1',
      taskQueue: taskQueues.events,
      args: [{ events: [event('one', id), event('two', id.replace('5', '6'))] }],
    });
    await close();
    await until('Temporal lists the group', async () => {
      const { status, stdout, stderr } = await runCommand(['trace', 'document', id], { env });
      expect([status, stderr]).toEqual([1, expect.stringContaining(sentence)]);
      return (
        stdout ===
        `document ${id}: 1 event in Temporal, to be recorded when Postgres answers
2026-11-22 01:10:00Z  event one: document.updated.v2, received; events/one+1/1`
      );
    });
  });

  test('in status and doctor, together with what they find out about Temporal', async () => {
    const status = await runCommand(['status', '--exit-code'], { env });
    expect(status).toMatchObject({ status: 4, stdout: expect.stringContaining(`warehouse: ${asked}`) });
    expect(status.stdout).toContain('no worker is running for events');
    expect(status.stdout).toContain(
      'Alarm WarehouseDown: no worker can open it, only the rules for Prometheus',
    );
    const { stdout } = await runCommand(['doctor'], { env });
    expect(stdout).toMatch(/^ok +Temporal /m);
    expect(stdout.split(sentence), 'it is said once').toHaveLength(2);
  });

  test('in schedule, which shows and pauses schedules without Postgres and says that the log lacks the entry', async () => {
    const shown = await runCommand(['schedule', 'show'], { env });
    expect(shown).toMatchObject({ status: 0, stdout: expect.stringMatching(/^full: 0 3 \* \* \*/) });
    const paused = await runCommand(['schedule', 'pause', 'full', '--reason', 'a move'], { env });
    expect(paused).toMatchObject({
      status: 0,
      stderr: expect.stringContaining(`Not in the log of operations: ${sentence}`),
    });
    const { client, close } = await connectClient(temporal);
    expect(await readSchedule(client, 'full')).toMatchObject({ state: 'paused' });
    await close();
  });
});

describe('without Postgres, every page says the same sentence', () => {
  test.each(['/runs', '/act/resume'])('%s', async (path) => {
    const answer = await ask(path);
    expect(answer.status).toBe(503);
    const text = await answer.text();
    expect(text).toContain(sentence);
    expect(text).toContain('<nav');
  });

  test('on Overview and System, which show everything else', async () => {
    for (const path of ['/', '/system']) {
      const answer = await ask(path);
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining(sentence)]);
    }
  });
});

describe('without Temporal, every command says the same sentence, and only status and doctor ask again', () => {
  const frozen = frozenTemporal.address;
  const nobody = '127.0.0.1:1';
  const away = (address: string, reason: string) =>
    `Temporal at ${address} (TEMPORAL_ADDRESS) does not answer: ${reason}`;
  const todo = 'What to do: Start Temporal, or correct TEMPORAL_ADDRESS.';
  const places = [
    [frozen, away(frozen, 'no answer within 2 s')],
    [nobody, away(nobody, `connect ECONNREFUSED ${nobody}`)],
    [
      'no-such-host.invalid:7233',
      away('no-such-host.invalid:7233', 'Name resolution failed for target dns:no-such-host.invalid:7233'),
    ],
  ] as const;
  const withPostgres = { ...env, DATABASE_URL: warehouse.url };

  test.each(places)('at %s', async (address, sentence) => {
    const at = { env: { ...withPostgres, TEMPORAL_ADDRESS: address } };
    const stderr = `metersync: ${sentence}\n${todo}`;
    for (const args of [['schedule', 'show'], ['backfill', 'all'], ['resume']])
      expect(await runCommand(args, at)).toEqual({ status: 1, stdout: '', stderr });
    const { stdout } = await runCommand(['status'], at);
    const said = address === frozen ? `${sentence}, nor within 5 s when asked again` : sentence;
    expect(stdout).toContain(`Unknown: Temporal: ${said}\n    ${todo}`);
    const doctor = await runCommand(['doctor'], at);
    expect(doctor.stdout.split(sentence), 'it is said once').toHaveLength(2);
    expect(doctor.stdout).toContain(todo);
  });

  test('and sends its first request only once', async () => {
    const seen: (string | undefined)[] = [];
    const server = createServer();
    server.on('stream', (stream, headers) => {
      seen.push(headers[':path']);
      const unavailable = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '14' };
      stream.respond(unavailable, { endStream: true });
    });
    server.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(connectClient({ address })).rejects.toThrow(
      `The embedded Temporal at ${address} does not answer: `,
    );
    expect(seen).toEqual([expect.stringContaining('DescribeNamespace')]);
  });

  test('and names both servers if Postgres does not answer either', async () => {
    const both = { env: { ...env, TEMPORAL_ADDRESS: frozen } };
    const answer = await runCommand(['trace', 'document', id], both);
    expect(answer.stderr).toContain(away(frozen, 'no answer within 1 s'));
    expect(answer.stderr).toContain(sentence);
    const status = await runCommand(['status'], both);
    for (const said of [away(frozen, 'no answer within 2 s'), sentence])
      expect(status.stdout).toContain(said);
  });
});

test('a command waits at most 7 s for a server, and a monitor learns which server is unreachable before it gives up', () => {
  expect(serverWaits.answerMs + serverWaits.answerAgainMs).toBeLessThanOrEqual(7_000);
  expect(monitorPolicy.answerMs).toBeLessThan(monitorPolicy.checkWithinMs);
});

test('a command that may create a database does not wait longer for the server of another process', async () => {
  const { port, hostname } = new URL(deafened.address);
  const owner = identify(process.pid);
  const postgres = { port: Number(port), user: 'postgres', password: 'geheim' };
  writeRunning(folder.path, {
    state: 'running',
    owner,
    dir: realpathSync(folder.path),
    servers: {},
    addresses: { postgres },
  });
  const { stderr } = await runCommand(['migrate', '--plan'], { env: { METERSYNC_DIR: folder.path } });
  expect(stderr).toBe(
    `metersync: The embedded Postgres at ${hostname}:${port}/metersync does not answer: no answer within 2 s, nor within 5 s when asked again
What to do: If Postgres is running, look at its load and its network, and try again. Otherwise restart metersync start, which runs the embedded Postgres, or set DATABASE_URL.`,
  );
});
