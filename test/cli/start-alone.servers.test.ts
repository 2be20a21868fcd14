import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { identify, isRunning, type ProcessIdentity } from '../../embedded/processes.ts';
import { readRunning } from '../../embedded/running.ts';
import { temporalCache } from '../../embedded/temporal-binary.ts';
import { verdictStatus } from '../../health/verdict.ts';
import { type RunningCommand, runProcess, startCommand } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';

const secrets = {
  SERVICE_API_KEY: 'key-that-nobody-may-see',
  WEBHOOK_SECRETS: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  TEMPORAL_CODEC_KEYS: `k1:${Buffer.alloc(32, 8).toString('base64')}`,
};
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let start: RunningCommand;

async function begin(
  given: Readonly<Record<string, string>>,
  options: readonly string[] = [],
): Promise<RunningCommand> {
  const begun = startCommand(['start', ...options], {
    cwd: folder.path,
    env: {
      ...given,
      PATH: `${temporalCache()}:${process.env.PATH}`,
      RECEIVER_PORT: String(await freePort()),
    },
  });
  await begun.printed(/receiver: POST /, 90_000);
  return begun;
}

// On nothing but an empty folder.
beforeAll(async () => {
  folder = await temporaryFolder();
  start = await begin(secrets);
});
afterAll(async () => {
  await start?.end('SIGKILL');
  await folder.remove();
});

const nobody = { uid: 65_534, gid: 65_534 };

/** Lists the arguments of every process, as we see them, and if we are root, as another user does. */
function everybodysArguments(): string[] {
  const readers = process.getuid?.() === 0 ? [{}, nobody] : [{}];
  const look =
    process.platform === 'linux' ? 'cat /proc/[0-9]*/cmdline 2>/dev/null || true' : 'ps -A -o command=';
  return readers.map((as) =>
    execFileSync('/bin/sh', ['-c', look], { ...as, cwd: '/', encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }),
  );
}

test('no password is in the arguments of a process, and the sandbox gets no secret and no superuser', async () => {
  const dir = join(folder.path, '.metersync');
  const superuser = readRunning(dir)?.addresses.postgres?.password ?? '';
  const { pid } = JSON.parse(readFileSync(join(dir, 'sandbox.json'), 'utf8'));
  const everybodys = everybodysArguments();
  expect(superuser).toMatch(/^\w{24}$/);
  expect(everybodys.map((text) => text.includes(dir))).toEqual(everybodys.map(() => true));
  for (const secret of [superuser, ...Object.values(secrets)]) {
    expect(everybodys.some((text) => text.includes(secret))).toBe(false);
  }

  const [, password = '', url = ''] = /PGPASSWORD=(\w+) psql (postgres:[^\s"]+)/.exec(start.stdout()) ?? [];
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

test("Temporal's web page is served and named only if it was asked for", async () => {
  expect(start.stdout()).toContain('TEMPORAL_ADDRESS is not set: an embedded Temporal at 127.0.0.1:');
  expect(start.stdout()).not.toContain('web page');
  expect(readRunning(join(folder.path, '.metersync'))?.addresses.temporal).not.toHaveProperty('uiUrl');
  const env = { PATH: `${temporalCache()}:${process.env.PATH}`, RECEIVER_PORT: String(await freePort()) };
  const second = await runProcess(['start', '--temporal-ui'], { cwd: folder.path, env });
  expect(second).toMatchObject({ status: 2, stderr: expect.stringContaining('without its web page: stop') });
});

test('names its stand-ins, and leaves no process behind whether it is drained or killed', {
  timeout: 120_000,
}, async () => {
  const servers = processesIn(folder.path);
  expect(servers.map(isRunning)).toEqual([true, true, true]);
  const ended = await start.end('SIGTERM');
  expect(ended, start.stderr()).toEqual({ status: 0, signal: null });
  expect(servers.filter(isRunning)).toEqual([]);

  const killed = await begin({ MAKE_SCHEDULES: 'geheim' }, ['--temporal-ui']);
  try {
    expect(killed.stdout()).toContain('MAKE_SCHEDULES no longer has an effect: ');
    expect(killed.stdout()).not.toContain('geheim');
    for (const name of ['DATABASE_URL', 'TEMPORAL_ADDRESS', 'SERVICE_URL']) {
      expect(killed.stdout()).toContain(`${name} is not set: `);
    }
    const [, page = ''] =
      /an embedded Temporal at \S+, web page (http:\/\/127\.0\.0\.1:\d+)/.exec(killed.stdout()) ?? [];
    await until("Temporal's web page answers", async () => (await fetch(page)).ok);
    expect(killed.stdout()).toMatch(/PGPASSWORD=\w+ psql postgres:\/\/metersync_owner@\S+\/metersync/);
    await whilePostgresHangs(async () => {
      const env = { PATH: `${temporalCache()}:${process.env.PATH}` };
      const [status, doctor, audit] = await Promise.all(
        [['status', '--exit-code'], ['doctor'], ['audit']].map((args) =>
          runProcess(args, { cwd: folder.path, env }),
        ),
      );
      expect(status, status?.stderr).toMatchObject({
        status: verdictStatus.Unknown,
        stdout: expect.stringMatching(
          /^Unknown: Postgres does not answer\n[\s\S]*no answer within 2 s[\s\S]*workers: running/,
        ),
      });
      expect(doctor, doctor?.stderr).toMatchObject({
        status: 1,
        stdout: expect.stringMatching(/^fail +warehouse .*no answer within 2 s[\s\S]*^ok +Temporal /m),
      });
      // Its sandbox hangs with its Postgres: no second one is started.
      expect(audit).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/does not answer: no answer within 2 s\n/),
      });
    });
    const servers = processesIn(folder.path);
    expect(servers.map(isRunning)).toEqual([true, true, true]);
    await killed.end('SIGKILL');
    await until('its servers are gone', () => servers.filter(isRunning).length === 0);
  } finally {
    await killed.end('SIGKILL');
  }
});

/** Stops Postgres and its children meanwhile, as a disk does that answers no more. */
async function whilePostgresHangs(work: () => Promise<void>): Promise<void> {
  const pid = readRunning(join(folder.path, '.metersync'))?.servers.postgres?.pid;
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

/** Lists the servers and the sandbox that stand in. */
function processesIn(cwd: string): ProcessIdentity[] {
  const dir = join(cwd, '.metersync');
  const running = readRunning(dir);
  const sandbox = identify(JSON.parse(readFileSync(join(dir, 'sandbox.json'), 'utf8')).pid);
  const { postgres, temporal } = running?.servers ?? {};
  return [postgres, temporal, sandbox].filter((one) => one !== undefined);
}
