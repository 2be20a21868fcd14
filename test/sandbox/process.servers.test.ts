import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../sandbox/sandbox.ts';
import {
  type ProcessOptions,
  type RunningCommand,
  runProcess,
  startCommand,
} from '../support/command-process.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/poll.ts';
import { type Receiver, startReceiver } from './support/receiver.ts';
import { type AnyRecord, type Service, talkTo } from './support/service.ts';

const commands: RunningCommand[] = [];
const databases: TestDatabase[] = [];
const receivers: Receiver[] = [];
afterEach(async () => {
  for (const command of commands.splice(0)) await command.end('SIGKILL');
  for (const receiver of receivers.splice(0)) await receiver.close();
  for (const database of databases.splice(0)) await database.drop();
});

async function newDatabase(): Promise<string> {
  const database = await createDatabase('sandbox');
  databases.push(database);
  return database.url;
}

const on = (databaseUrl: string): ProcessOptions => ({
  program: 'sandbox/main.ts',
  env: { SANDBOX_DATABASE_URL: databaseUrl },
});

function run(databaseUrl: string, args: readonly string[]): RunningCommand {
  const command = startCommand(args, on(databaseUrl));
  commands.push(command);
  return command;
}

const small = ['--companies', '1', '--documents', '4', '--interval-days', '0'];
const forTests = [...small, '--api-key', 'key-of-the-test', '--json'];

const never = new Promise<never>(() => {});

async function start(databaseUrl: string, more: readonly string[] = []) {
  const command = run(databaseUrl, [...forTests, ...more]);
  const line = await command.printed(/^\{"url"/);
  const ready = JSON.parse(line) as Record<'url' | 'apiUrl' | 'apiKey' | 'controlToken', string>;
  const sandbox = { ...ready, organizations: [], lost: never, close: async () => undefined };
  return { command, service: talkTo(sandbox, databaseUrl) };
}

describe('the process', () => {
  test('prints one line of JSON when ready, answers, and shuts down cleanly on SIGTERM', async () => {
    const { command, service } = await start(await newDatabase());
    expect(service.sandbox.apiUrl).toBe(`${service.sandbox.url}/v2.2`);
    expect(service.sandbox.apiKey).toBe('key-of-the-test');
    expect((await service.api('/ping')).status).toBe(200);
    expect(await command.end('SIGTERM')).toMatchObject({ status: 0 });
  });

  test('ends with its parent if it was started with --with-parent', async () => {
    const child = spawn(process.execPath, ['sandbox/main.ts', ...forTests, '--with-parent'], {
      env: { ...process.env, ...on(await newDatabase()).env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    child.stdin.end();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  test('explains a wrong command line and ends with status 2', async () => {
    const wrong = await runProcess(['--port', 'many'], on('x'));
    expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('--port') });
  });

  test('says which port is taken, and what to do', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await expect(startSandbox({ databaseUrl: await newDatabase(), port })).rejects.toThrow(
      `port ${port} of 127.0.0.1 is taken: choose another --port`,
    );
  });
});

describe('a restart', () => {
  test('keeps data, changes, endpoints, the clock and disturbances, but not faults, and generates nothing again', async () => {
    const databaseUrl = await newDatabase();
    const before = await start(databaseUrl, ['--time-scale', '1000']);
    await before.service.enableWebhooks();
    await before.service.control('POST', '/sandbox/endpoints', { url: 'http://127.0.0.1:9/x' });
    await before.service.control('POST', '/sandbox/random', { count: 50 });
    await before.service.control('POST', '/sandbox/disturb', { duplicate: 0.25 });
    await before.service.control('POST', '/sandbox/faults', { kind: 'reset', path: '/none' });
    await before.service.control('POST', '/sandbox/clock', { advanceSeconds: 7200 });
    const seen = await look(before.service);
    const { now } = await before.service.control<AnyRecord>('GET', '/sandbox/status');
    await before.command.end('SIGTERM');
    const after = await start(databaseUrl, ['--companies', '3']);
    expect(await look(after.service)).toEqual(seen);
    await until('it says whose data it serves', () => after.command.stderr().includes('of an earlier start'));
    const status = await after.service.control<AnyRecord>('GET', '/sandbox/status');
    expect(status.now > now).toBe(true);
    expect(await after.service.control('GET', '/sandbox/faults')).toEqual({ faults: [] });
  });

  const look = async ({ api, control, eventsAfter }: Omit<Service, 'stop'>) => ({
    companies: (await api('/company')).text,
    webhooks: (await api('/external/configure_webhook')).text,
    events: await eventsAfter(0),
    endpoints: await control('GET', '/sandbox/endpoints'),
  });
});

describe('kill -9', () => {
  test('loses no delivery and repeats at most the deliveries in flight', async () => {
    const databaseUrl = await newDatabase();
    const receiver = await startReceiver((_delivery, response) => {
      setTimeout(() => response.writeHead(204).end(), 5);
    });
    receivers.push(receiver);
    let running = await start(databaseUrl);
    await running.service.enableWebhooks();
    await running.service.control('POST', '/sandbox/endpoints', { url: receiver.url });
    const kills = 2;
    for (let kill = 1; kill <= kills; kill++) {
      const fired = running.service
        .control('POST', '/sandbox/random', {
          count: 600,
          seed: kill,
          types: ['createDocument', 'syncIntervals'],
        })
        .catch(() => undefined);
      const goal = receiver.deliveries.length + 150;
      await until('deliveries are under way', () => receiver.deliveries.length >= goal, { everyMs: 2 });
      await running.command.end('SIGKILL');
      await fired;
      running = await start(databaseUrl);
    }
    await running.service.quiet();
    const written = (await running.service.eventsAfter(0)).map(({ id }) => id);
    const received = receiver.deliveries.map(({ headers }) => String(headers['webhook-id']));
    expect(written.length).toBeGreaterThan(300);
    expect([...new Set(received)].sort()).toEqual([...written].sort());
    expect(received.length - written.length).toBeLessThanOrEqual(16 * kills);
  });
});
