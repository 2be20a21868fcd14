import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { failureTypes } from '../../contract/failures.ts';
import { taskQueues, workflowNames } from '../../contract/names.ts';
import { readRunning } from '../../embedded/folder.ts';
import { identify, isRunning, type ProcessIdentity } from '../../embedded/process.ts';
import { temporalCache } from '../../embedded/temporal.ts';
import { verdictStatus } from '../../health/verdict.ts';
import { runCommand } from '../support/command.ts';
import { type RunningCommand, startCommand, withoutThreads } from '../support/command-process.ts';
import { delivery } from '../support/events.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';

const secrets = {
  SERVICE_API_KEY: 'key-that-nobody-may-see',
  WEBHOOK_SECRETS: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  TEMPORAL_CODEC_KEYS: `k1:${Buffer.alloc(32, 8).toString('base64')}`,
};
const path = { PATH: `${temporalCache()}:${process.env.PATH}` };
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let start: RunningCommand;
/** The endpoint of the first start, for comparison with the last. */
let endpointBefore: { id: string | undefined; secret: string | undefined };

async function begin(
  given: Readonly<Record<string, string>>,
  options: readonly string[] = [],
): Promise<RunningCommand> {
  const begun = startCommand(['start', ...options], {
    cwd: folder.path,
    env: {
      ...given,
      ...path,
      RECEIVER_PORT: String(await freePort()),
      CONSOLE_PORT: String(await freePort()),
    },
  });
  await begun.printed(/receiver: POST /, 90_000);
  return begun;
}

/** The folder of the stand-ins. */
const dirOf = () => join(folder.path, '.metersync');

// Starts in an empty folder, without any server.
beforeAll(async () => {
  folder = await temporaryFolder();
  start = await begin({}, ['--live', '120']);
  await start.printed(/worker: running/, 90_000);
}, 100_000);
afterAll(async () => {
  await start?.end('SIGKILL');
  await folder.remove();
});

/** Sends a query to the embedded warehouse. */
async function ask<Row extends pg.QueryResultRow>(text: string, ...values: string[]): Promise<Row[]> {
  const { postgres } = readRunning(dirOf())?.addresses ?? {};
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

test('the stand-ins accept no event from other users, who do not have the key', {
  timeout: 60_000,
}, async () => {
  const { temporal } = readRunning(dirOf())?.addresses ?? {};
  const connection = await Connection.connect({ address: temporal?.address ?? '' });
  const event = delivery({ eventType: 'document.created.v2' });
  const forged = await new Client({ connection }).workflow.start(workflowNames.applyEvents, {
    workflowId: 'event/forged/1',
    taskQueue: taskQueues.events,
    args: [{ events: [event] }],
  });
  // The advice is logged once, however often the work is tried.
  await start.printed(/"code":"PAYLOAD_REFUSED","todo":".*temporal-codec-key/);
  await start.printed(/PAYLOAD_REFUSED.*event\/forged\/1|event\/forged\/1.*PAYLOAD_REFUSED/);
  expect(await ask('select from metersync.events where id = $1', event.id)).toEqual([]);
  // Otherwise it stays, and after a while the status calls it stuck.
  await forged.terminate();
  await connection.close();
  // Events of --live are applied.
  await companyOfLiveChange();
});

test('the stand-ins give their key to a command in the same folder that names their address', {
  timeout: 60_000,
}, async () => {
  const { temporal } = readRunning(dirOf())?.addresses ?? {};
  const env = { ...path, TEMPORAL_ADDRESS: temporal?.address ?? '' };
  // One company proves this as well as all companies of the sandbox.
  const args = ['backfill', '--company', await companyOfLiveChange(), '--follow'];
  const run = await runCommand(args, { cwd: folder.path, env });
  expect(run, run.stderr).toMatchObject({ status: 0, stdout: expect.stringMatching(/: complete$/) });
  const said = start
    .stdout()
    .split('\n')
    .filter((line) => line.includes(`"todo":${JSON.stringify(failureTypes.PAYLOAD_REFUSED.operator)}`));
  expect(said).toHaveLength(1);
});

test('a command that names another Temporal does not reach the stand-ins', async () => {
  const env = { ...path, TEMPORAL_ADDRESS: '127.0.0.1:1' };
  expect(await runCommand(['backfill', 'all'], { cwd: folder.path, env })).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Temporal at 127.0.0.1:1 (TEMPORAL_ADDRESS) does not answer'),
  });
});

test('the stand-ins keep secrets in private files', () => {
  const dir = dirOf();
  for (const name of ['temporal-codec-key', 'sandbox.json', 'running.json', 'temporal.db']) {
    expect((statSync(join(dir, name)).mode & 0o777).toString(8), name).toBe('600');
  }
  // Root runs Postgres under another account, which has to pass through the folder.
  expect((statSync(dir).mode & 0o066).toString(8)).toBe('0');
  if (process.getuid?.() !== 0) return;
  const read = `cat "${dir}/temporal-codec-key" "${dir}/sandbox.json" "${dir}/running.json" 2>&1 || true`;
  const said = execFileSync('/bin/sh', ['-c', read], { ...nobody, cwd: '/', encoding: 'utf8' })
    .trim()
    .split('\n');
  expect(said).toEqual(Array.from({ length: 3 }, () => expect.stringContaining('Permission denied')));
});

/** The webhook endpoints of the sandbox, and how many deliveries are in each state. */
async function webhooksOfSandbox() {
  const { url, controlToken } = JSON.parse(readFileSync(join(dirOf(), 'sandbox.json'), 'utf8'));
  const get = async (path: string) => {
    const headers = { authorization: `Bearer ${controlToken}` };
    return (await fetch(`${url}/sandbox/${path}`, { headers })).json();
  };
  type Endpoint = { id: string; url: string; secret: string; state: string };
  const { endpoints } = (await get('endpoints')) as { endpoints: Endpoint[] };
  const { deliveries } = (await get('status')) as { deliveries: Record<string, number> };
  return { endpoints, deliveries };
}

test('a second start in the folder is refused at once with the process id, and leaves the first one its endpoint', {
  timeout: 60_000,
}, async () => {
  const before = await webhooksOfSandbox();
  endpointBefore = { id: before.endpoints[0]?.id, secret: before.endpoints[0]?.secret };
  const env = { ...path, RECEIVER_PORT: String(await freePort()) };
  expect(await runCommand(['start'], { cwd: folder.path, env })).toEqual({
    status: 1,
    stdout: '',
    stderr: `metersync: Process ${start.pid} already uses the folder ${realpathSync(dirOf())}. End that process, or set METERSYNC_DIR to another folder.`,
  });
  expect((await webhooksOfSandbox()).endpoints).toEqual(before.endpoints);
  await until('the first one still accepts what the sandbox delivers', async () => {
    const { deliveries } = await webhooksOfSandbox();
    return (deliveries.delivered ?? 0) > (before.deliveries.delivered ?? 0);
  });
  expect((await webhooksOfSandbox()).deliveries).toMatchObject({ cancelled: 0, failed: 0 });
});

test('the log names the files that hold passwords, keys and the link of the console, which only the user can read', () => {
  const dir = dirOf();
  const files = ['pgpass', 'sandbox.json', 'console-link'].map((name) => join(dir, name));
  for (const file of files) {
    expect(start.stdout(), file).toContain(file);
    expect((statSync(file).mode & 0o777).toString(8), file).toBe('600');
  }
  const [password, sandbox, link] = files.map((file) => readFileSync(file, 'utf8').trim());
  const secret = [
    password?.split(':').at(-1),
    JSON.parse(sandbox ?? '').apiKey,
    link?.split('/').at(-1),
    readRunning(dir)?.addresses.postgres?.password,
  ];
  for (const text of secret) {
    expect(text?.length).toBeGreaterThan(20);
    expect(`${start.stdout()}${start.stderr()}`.includes(text)).toBe(false);
  }
});

test.runIf(spawnSync('psql', ['--version']).status === 0)('the log has a command of psql that works', () => {
  const [, command = ''] = /an embedded Postgres, (PGPASSFILE=[^"]+)/.exec(start.stdout()) ?? [];
  const said = execFileSync('/bin/sh', ['-c', `${command} -Atc 'select current_user'`], { encoding: 'utf8' });
  expect(said.trim()).toBe('metersync_owner');
});

const nobody = { uid: 65_534, gid: 65_534 };

/** Lists the arguments of every process, as this user sees them and, for root, also as another user does. */
function everybodysArguments(): string[] {
  const readers = process.getuid?.() === 0 ? [{}, nobody] : [{}];
  const look =
    process.platform === 'linux' ? 'cat /proc/[0-9]*/cmdline 2>/dev/null || true' : 'ps -A -o command=';
  return readers.map((as) =>
    execFileSync('/bin/sh', ['-c', look], { ...as, cwd: '/', encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }),
  );
}

test("Temporal's web page is served and named only if it was asked for", () => {
  expect(start.stdout()).toContain('TEMPORAL_ADDRESS is not set: an embedded Temporal at 127.0.0.1:');
  expect(start.stdout()).not.toContain('web page');
  expect(readRunning(dirOf())?.addresses.temporal).not.toHaveProperty('uiUrl');
});

test('start names its stand-ins, leaves no process behind when it is drained, and starts again', {
  timeout: 120_000,
}, async () => {
  for (const name of ['DATABASE_URL', 'TEMPORAL_ADDRESS', 'SERVICE_URL'])
    expect(start.stdout()).toContain(`${name} is not set: `);
  const servers = processesIn(folder.path);
  expect(servers.map(isRunning)).toEqual([true, true, true]);
  const ended = await start.end('SIGTERM');
  expect(ended, start.stderr()).toEqual({ status: 0, signal: null });
  expect(servers.filter(isRunning)).toEqual([]);

  start = await begin({ ...withoutThreads, ...secrets }, ['--temporal-ui']);
  const [, page = ''] =
    /an embedded Temporal at \S+, web page (http:\/\/127\.0\.0\.1:\d+)/.exec(start.stdout()) ?? [];
  await until("Temporal's web page answers", async () => (await fetch(page)).ok);
});

test('no password is in the arguments of a process, and the sandbox gets no secret and no superuser', async () => {
  const dir = dirOf();
  const superuser = readRunning(dir)?.addresses.postgres?.password ?? '';
  const { pid } = JSON.parse(readFileSync(join(dir, 'sandbox.json'), 'utf8'));
  const everybodys = everybodysArguments();
  expect(superuser).toMatch(/^\w{24}$/);
  expect(everybodys.map((text) => text.includes(dir))).toEqual(everybodys.map(() => true));
  for (const secret of [superuser, ...Object.values(secrets)]) {
    expect(everybodys.some((text) => text.includes(secret))).toBe(false);
  }

  const [, url = ''] = / psql (postgres:[^\s"]+)/.exec(start.stdout()) ?? [];
  const password = readFileSync(join(dir, 'pgpass'), 'utf8').trim().split(':').at(-1) ?? '';
  expect(password).toMatch(/^\w{32}$/);
  expect(everybodys.some((text) => text.includes(password))).toBe(false);
  if (process.platform === 'linux') {
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
    const [, ofSandbox = ''] =
      /SANDBOX_DATABASE_URL=postgres:\/\/sandbox_owner:(\w+)@/.exec(environment) ?? [];
    expect(ofSandbox).toMatch(/^\w{32}$/);
    expect(everybodys.some((text) => text.includes(ofSandbox))).toBe(false);
    const hidden = [superuser, password, ...Object.values(secrets), ...Object.keys(secrets)];
    expect(hidden.filter((text) => environment.includes(text))).toEqual([]);
  }

  const client = new pg.Client({ connectionString: Object.assign(new URL(url), { password }).href });
  await client.connect();
  onTestFinished(() => client.end());
  const { rows } = await client.query('select rolsuper from pg_roles where rolname = current_user');
  expect(rows).toEqual([{ rolsuper: false }]);
});

test('commands name a Postgres that hangs, and a killed start leaves no process behind', {
  timeout: 120_000,
}, async () => {
  await whilePostgresHangs(async () => {
    const [status, doctor, audit] = await Promise.all(
      [['status', '--exit-code'], ['doctor'], ['audit']].map((args) =>
        runCommand(args, { cwd: folder.path, env: path }),
      ),
    );
    expect(status, status?.stderr).toMatchObject({
      status: verdictStatus.Unknown,
      stdout: expect.stringMatching(
        /^Unknown: Postgres does not answer in time\n[\s\S]*no answer within 2 s[\s\S]*workers: running/,
      ),
    });
    expect(doctor, doctor?.stderr).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/^fail +warehouse .*no answer within 2 s[\s\S]*^ok +Temporal /m),
    });
    // The sandbox hangs because Postgres hangs. The command does not start a second sandbox.
    expect(audit).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /does not answer: no answer within 2 s, nor within 5 s when asked again\n/,
      ),
    });
  });
  const servers = processesIn(folder.path);
  expect(servers.map(isRunning)).toEqual([true, true, true]);
  await start.end('SIGKILL');
  await until('its servers are gone', () => servers.filter(isRunning).length === 0);
});

test('a restart keeps the endpoint and its secret at another port, and a Postgres that dies ends it with advice', {
  timeout: 120_000,
}, async () => {
  await start.end('SIGKILL');
  start = await begin(withoutThreads);
  const { endpoints } = await webhooksOfSandbox();
  const [, url] = /receiver: POST (\S+)"/.exec(start.stdout()) ?? [];
  expect(endpoints).toMatchObject([{ ...endpointBefore, url, state: 'active' }]);
  process.kill(readRunning(dirOf())?.servers.postgres?.pid ?? 0, 'SIGKILL');
  expect(await start.ended).toEqual({ status: 1, signal: null });
  expect(start.stderr()).toMatch(
    /metersync: The embedded Postgres ended by itself \(SIGKILL\), and nothing works without it\. Run the same command again\.\n.*logs\/postgres\.log may say why it ended\./,
  );
});

/** Stops Postgres and its children while `work` runs, as if their disk no longer answered. */
async function whilePostgresHangs(work: () => Promise<void>): Promise<void> {
  const pid = readRunning(dirOf())?.servers.postgres?.pid;
  const tree = execFileSync('/bin/sh', ['-c', `echo ${pid}; pgrep -P ${pid}`], { encoding: 'utf8' });
  const signal = (name: string) =>
    execFileSync('/bin/sh', ['-c', `kill -${name} ${tree.split('\n').join(' ')} || true`]);
  signal('STOP');
  try {
    await work();
  } finally {
    signal('CONT');
  }
}

/** Lists the processes of the stand-ins: both servers and the sandbox. */
function processesIn(cwd: string): ProcessIdentity[] {
  const dir = join(cwd, '.metersync');
  const running = readRunning(dir);
  const sandbox = identify(JSON.parse(readFileSync(join(dir, 'sandbox.json'), 'utf8')).pid);
  const { postgres, temporal } = running?.servers ?? {};
  return [postgres, temporal, sandbox].filter((one) => one !== undefined);
}
