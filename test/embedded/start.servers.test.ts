import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { claimFolder, prepareFolder, readRunning, runningFile } from '../../embedded/folder.ts';
import { identify, launch, untilReady } from '../../embedded/process.ts';
import { choosePorts, type Embedded, type EmbeddedOptions, startEmbedded } from '../../embedded/start.ts';
import { temporalServer } from '../../embedded/temporal.ts';
import { temporaryFolder as folderForFile } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import { folderWithData, putData, startOwner, temporaryFolder } from './owner-process.ts';

const start = (dir: string) => run({ dir, postgres: true, temporal: true });
const startPostgres = (dir: string) => run({ dir, postgres: true, temporal: false });

/** Starts a stack that is stopped after the test, unless the test stops it. */
async function run(options: EmbeddedOptions): Promise<Embedded> {
  const stack = await startEmbedded({ ...options });
  onTestFinished(stack.stop);
  return stack;
}

describe('a restart', () => {
  test('keeps rows, namespaces and workflows, and the addresses', async () => {
    const dir = temporaryFolder();
    const first = await start(dir);
    const url = await first.postgres?.ensureDatabase('warehouse');
    await query(url, 'create table t as select 7 as n');
    await inTemporal(first, 'default', async ({ connection }) => {
      await connection.workflowService.registerNamespace({
        namespace: 'kept',
        workflowExecutionRetentionPeriod: msToTs('1 day'),
      });
    });
    await inTemporal(first, 'kept', (client) =>
      until('a workflow starts in the namespace', () =>
        client.workflow.start('w', { taskQueue: 'q', workflowId: 'kept', memo: { n: 7 } }),
      ),
    );
    await first.stop();

    const second = await start(dir);
    expect(second.owned).toBe(true);
    expect(second.temporal).toEqual(first.temporal);
    expect(await second.postgres?.ensureDatabase('warehouse')).toBe(url);
    expect(await query(url, 'select n from t')).toEqual([{ n: 7 }]);
    await inTemporal(second, 'kept', async (client) => {
      const { status, memo } = await client.workflow.getHandle('kept').describe();
      expect([status.name, memo]).toEqual(['RUNNING', { n: 7 }]);
    });
  });

  test('chooses another port when something else uses the previous one', async () => {
    const dir = temporaryFolder();
    const first = await choosePorts(dir);
    const other = createServer().listen(first.postgres, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { postgres, ...others } = await choosePorts(dir);
    expect({ ...others, postgres: first.postgres }).toEqual(first);
    expect(postgres).not.toBe(first.postgres);
  });
});

describe('a Postgres', async () => {
  const { path: dir } = await forFile(folderForFile());
  putData(dir);
  const stack = await forFile(startEmbedded({ dir, postgres: true, temporal: false }));

  test('is durable, listens only on the loopback address, and asks for a password', async () => {
    const url = stack.postgres?.superuserUrl('postgres') ?? '';
    const names = ['fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses'];
    const rows = await query(url, `select name, setting from pg_settings where name = any('{${names}}')`);
    expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
      listen_addresses: '127.0.0.1',
    });
    await expect(query(url.replace(/:[0-9a-f]+@/, ':wrong@'), 'select 1')).rejects.toThrow(/authentication/);
  });

  test('writes files that only its user can read', async () => {
    claimFolder(dir);
    const files = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isFile());
    const open = files.filter(({ name }) => (statSync(join(dir, name)).mode & 0o077) !== 0);
    expect(files.length).toBeGreaterThan(1);
    expect(open.map(({ name }) => name)).toEqual([]);
  });

  test('does not serve a second caller in a copy of its folder, which starts its own stack', async () => {
    const copy = folderWithData();
    copyFileSync(runningFile(dir), runningFile(copy));
    const second = await startPostgres(copy);
    expect(second.owned).toBe(true);
    expect(second.postgres?.superuserUrl('postgres')).not.toBe(stack.postgres?.superuserUrl('postgres'));
    expect(await query(stack.postgres?.superuserUrl('postgres'), 'select 1 as n')).toEqual([{ n: 1 }]);
  });

  test('gives an error to a second caller who wants a server that it lacks', async () => {
    await expect(start(dir)).rejects.toThrow(/has no Temporal.*\n.*same settings/);
  });
});

describe('a Temporal in a data folder whose name has characters of URLs', async () => {
  const dir = join((await forFile(folderForFile())).path, 'C# why? %41', 'data');
  const stack = await forFile(startEmbedded({ dir, postgres: false, temporal: true, temporalUi: true }));

  test('keeps its database there', () => {
    expect(readdirSync(dir)).toContain('temporal.db');
  });

  test('has its web page if that is asked for, and refuses posts from web pages of other sites', async () => {
    // The page has its own connection to the server, which may need a second longer.
    const version = await until('the page knows the version of the server', async () => {
      const answer = await fetch(`${stack.temporal?.uiUrl}/api/v1/cluster-info`);
      return ((await answer.json()) as { serverVersion?: string }).serverVersion;
    });
    expect(version).toMatch(/^\d+\.\d+/);
    const { clusters } = await inTemporal(stack, 'default', ({ connection }) =>
      connection.operatorService.listClusters({}),
    );
    const httpAddress = clusters?.[0]?.httpAddress;
    const post = async (base: string) => {
      const answer = await fetch(`${base}/api/v1/namespaces/default/workflows/posted`, {
        method: 'POST',
        headers: {
          'content-type': 'text/plain',
          'sec-fetch-site': 'cross-site',
          origin: 'https://evil.example',
        },
        body: JSON.stringify({ workflowType: { name: 'w' }, taskQueue: { name: 'q' } }),
      });
      return answer.status;
    };
    expect(await post(`http://${httpAddress}`)).toBe(403);
    expect(await post(stack.temporal?.uiUrl ?? '')).toBeGreaterThanOrEqual(400);
    await inTemporal(stack, 'default', async (client) => {
      await expect(client.workflow.getHandle('posted').describe()).rejects.toThrow(/not found/);
    });
  });
});

describe('a second caller', () => {
  test('attaches to the stack of another process, and does not stop it', async () => {
    const dir = folderWithData();
    await startOwner(dir);
    const stack = await start(dir);
    expect(stack.owned).toBe(false);
    await stack.stop();
    expect(await query(stack.postgres?.superuserUrl('postgres'), 'select 1 as n')).toEqual([{ n: 1 }]);
    expect((await start(dir)).temporal).toEqual(stack.temporal);
  });

  test('waits for the first caller while it starts', async () => {
    const dir = folderWithData();
    const stacks = await Promise.all([start(dir), start(dir), start(dir)]);
    expect(stacks.filter(({ owned }) => owned)).toHaveLength(1);
    expect(new Set(stacks.map(({ temporal }) => temporal?.address)).size).toBe(1);
  });

  test.each([false, true])('waits for the first caller while it stops (alone: %s)', async (alone) => {
    const dir = folderWithData();
    const first = await startPostgres(dir);
    const stopped = first.stop();
    await until('the first stops', () => readRunning(dir)?.state === 'stopping');
    const second = await run({ dir, postgres: true, temporal: false, alone });
    expect(second.owned).toBe(true);
    expect(await query(second.postgres?.superuserUrl('postgres'), 'select 1 as n')).toEqual([{ n: 1 }]);
    await stopped;
  });
});

describe('a claim', () => {
  /** Writes the claim of another process that holds the folder. */
  const claimOf = (dir: string, owner: unknown, { state = 'starting', mode = 0o600 } = {}) =>
    writeFileSync(
      runningFile(dir),
      JSON.stringify({ state, dir: realpathSync(dir), owner, servers: {}, addresses: {} }),
      { mode },
    );

  test.each(['starting', 'running'])(
    'of a %s process refuses a caller that wants to be alone',
    async (state) => {
      const dir = temporaryFolder();
      claimOf(dir, identify(process.pid), { state });
      await expect(run({ dir, postgres: true, temporal: true, alone: true })).rejects.toThrow(
        `Process ${process.pid} already uses the folder ${dir}. End that process, or set METERSYNC_DIR to another folder.`,
      );
    },
  );

  test('is ignored if another user may have written it', () => {
    const dir = temporaryFolder();
    claimOf(dir, identify(process.pid), { mode: 0o644 });
    expect(claimFolder(dir)).toHaveProperty('release');
    expect(statSync(runningFile(dir)).mode & 0o777).toBe(0o600);
  });

  test('that cannot be written, for example on a full disk, names the folder and leaves no file', () => {
    const dir = temporaryFolder();
    symlinkSync('/dev/full', `${runningFile(dir)}.${process.pid}`);
    expect(() => claimFolder(dir)).toThrow(`The data folder ${dir} cannot be written: ENOSPC`);
    expect(readdirSync(dir)).toEqual([]);
  });

  test('of a process that starts is waited for, with its id in the log, and taken over when it has ended', async () => {
    const dir = folderWithData();
    claimOf(dir, identify(process.pid));
    const said = Promise.withResolvers<string>();
    const started = run({ dir, postgres: true, temporal: false, log: said.resolve });
    expect(await said.promise).toContain(`process ${process.pid} is starting or stopping`);
    claimOf(dir, { pid: process.pid, started: 'in another life' });
    expect((await started).owned).toBe(true);
  });
});

test('makes a folder private that others can write, and refuses a folder of another user', () => {
  const open = temporaryFolder();
  chmodSync(open, 0o777);
  prepareFolder(open);
  expect(statSync(open).mode & 0o022).toBe(0);
  // Without root only folders of the system belong to another user.
  const root = process.getuid?.() === 0;
  const theirs = root ? temporaryFolder() : '/usr';
  if (root) chownSync(theirs, 65_534, 65_534);
  expect(() => prepareFolder(theirs)).toThrow(/cannot be written by .*(belongs to user 65534|EACCES)/);
});

test('quotes the end of the log of a server that does not start', async () => {
  const dir = folderWithData();
  const first = await startPostgres(dir);
  await first.stop();
  const settings = join(dir, 'postgres', 'postgresql.conf');
  writeFileSync(settings, `${readFileSync(settings)}\nshared_buffers = 'plenty'\n`);
  const started = startPostgres(dir);
  await expect(started).rejects.toThrow(
    /postgres server .* ended at once[\s\S]*invalid value.*shared_buffers/,
  );
});

test('a server that has ended is not ready, even if another server answers at its port', async () => {
  const dir = temporaryFolder();
  mkdirSync(join(dir, 'logs'));
  const { server } = temporalServer({ dir, binary: '/no/such/program', port: 0 });
  const launched = launch(server);
  const ready = untilReady(server, launched, async () => (await launched.ended) !== '');
  await expect(ready).rejects.toThrow(/ended at once \(status 127\)[\s\S]*such\/program/);
});

test('a start that fails because Temporal is missing ends only after its other work in the folder has ended', async () => {
  const [dir, cache] = [temporaryFolder(), temporaryFolder()];
  // The search for the program fails at its cache.
  writeFileSync(join(cache, 'metersync'), '');
  vi.stubEnv('XDG_CACHE_HOME', cache);
  vi.stubEnv('PATH', '/usr/bin:/bin');
  await expect(run({ dir, postgres: true, temporal: true })).rejects.toThrow('There is no Temporal server');
  expect(existsSync(join(dir, 'postgres', 'metersync-password'))).toBe(true);
  expect(existsSync(runningFile(dir))).toBe(false);
});

async function query(connectionString: string | undefined, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function inTemporal<T>(
  stack: Embedded,
  namespace: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const connection = await Connection.connect({ address: stack.temporal?.address ?? '' });
  try {
    return await work(new Client({ connection, namespace }));
  } finally {
    await connection.close();
  }
}
