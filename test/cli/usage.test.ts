import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { pathOf } from '../../cli/command-line.ts';
import { buildProgram } from '../../cli/program.ts';
import manifest from '../../package.json' with { type: 'json' };
import { runCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { freePort } from '../support/port.ts';

const folder = await forFile(temporaryFolder());

const metersync = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runCommand(args, { cwd: folder.path, env: { METERSYNC_DIR: folder.path, ...env } });

/** Lists the commands without subcommands. */
const leaves = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);

const calls = () =>
  leaves(buildProgram()).map((command) => ({ name: pathOf(command).replace('metersync ', ''), command }));

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (piece) => {
      text += piece;
    },
  });
  command.outputHelp();
  return text;
}

describe('help', () => {
  test('names every command of the program', async () => {
    const { status, stdout, stderr } = await metersync(['--help']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: metersync \[options\] \[command\]$/m);
    // Only containers need it.
    expect(stdout).not.toContain('healthcheck');
    for (const { name } of calls().filter(({ name }) => name !== 'healthcheck'))
      expect(stdout).toMatch(new RegExp(`^ {2}${name.split(' ')[0]} `, 'm'));
    const groups = stdout.match(/^\w.*:$/gm);
    expect(groups).toEqual([
      'Options:',
      'Run:',
      'Look:',
      'Load and repair:',
      'Analyse:',
      'Try:',
      'Rarely:',
      'Commands:',
    ]);
  });

  test.each(calls())('describes $name in a sentence and shows a valid call', async ({ command }) => {
    expect(command.description()).toMatch(/^[A-Z][a-z]+ .*[^.]$/);
    const [, line = ''] = /\nExample:\n {2}(.+)$/m.exec(helpOf(command)) ?? [];
    expect(line).toContain(pathOf(command));
    const words = line.replace(/^open "\$\((.*)\)"$/, '$1').replace('metersync ', '');
    const args = [...words.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
    const program = buildProgram();
    const called: string[] = [];
    for (const leaf of leaves(program)) leaf.exitOverride().action(() => void called.push(pathOf(leaf)));
    await program.exitOverride().parseAsync(args, { from: 'user' });
    expect(called).toEqual([pathOf(command)]);
  });

  test('--version prints the version of the package', async () => {
    expect(await metersync(['--version'])).toMatchObject({ status: 0, stdout: manifest.version });
  });
});

describe('wrong usage ends with status 2 and a message on standard error only', () => {
  test.each([
    [['fly'], "unknown command 'fly'"],
    [['status', '--fast'], "unknown option '--fast'"],
    [['backfill'], 'choose what to backfill (all, --company ID or --external-id X)'],
    [
      ['backfill', 'all', '--run', '0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f'],
      'only one of these at a time: all, --run',
    ],
    [['backfill', 'some'], 'unknown scope some: write all'],
    [['backfill', '--company', 'acme'], 'must be a UUID'],
    [['backfill', '--company'], 'argument missing'],
    [['audit', '--settle', '2d'], 'must be at most 1h'],
    [['audit', '--settle', 'hourly'], 'must be a number and s, m, h or d'],
    [['schedule'], 'Usage: metersync schedule'],
    [['schedule', 'pause', 'weekly'], 'Allowed choices are full, reconcile'],
    [['schedule', 'pause'], "missing required argument 'schedule'"],
    [['events', 'list', '--since', 'yesterday'], 'must be a time'],
    [['audit', '--since', '999999d'], 'must be a time'],
    [['events', 'list', '--since', '2026-02-01 (noon)'], 'must be a time'],
    [['events', 'list', '--limit', '0'], 'must be 1 or more'],
    [['events', 'list', '--limit', '9999999999'], 'up to nine digits'],
    [['trace', 'company', 'x'], 'document, connection, meter'],
    [['deletes', 'approve'], "missing required argument 'run'"],
    [['start', '--live', 'many'], 'must be a whole number'],
    [
      ['export', 'bills', '--out', 'bills.xlsx'],
      'bills.xlsx is not a format that this command writes: name a file that ends in .csv or .parquet',
    ],
    [['export', 'bills', '--spreadsheet', '--out', 'bills.parquet'], '--spreadsheet is only for CSV'],
  ])('metersync %j', async (args, words) => {
    const { status, stdout, stderr } = await metersync(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});

test('after wrong usage a command points to its own help', async () => {
  const { stderr } = await metersync(['backfill', '--run', 'abc']);
  expect(stderr).toMatch(/It must be a UUID\.\nSee metersync backfill --help$/);
  expect((await metersync(['events', 'list', '--limit', 'x'])).stderr).toMatch(
    /\nSee metersync events list --help$/,
  );
});

test.each([
  [['--live', '5'], '--live makes changes in the sandbox'],
  [['--temporal-ui'], '--temporal-ui needs the embedded Temporal'],
])('refuses start %j if no stand-in runs', async (options, words) => {
  const address = `127.0.0.1:${await freePort()}`;
  const { status, stderr } = await metersync(['start', ...options], {
    SERVICE_URL: `http://${address}/v2.2`,
    SERVICE_API_KEY: 'key',
    TEMPORAL_ADDRESS: address,
    DATABASE_URL: `postgres://user@${address}/warehouse`,
  });
  expect({ status, stderr }).toEqual({
    status: 2,
    stderr: expect.stringMatching(`^metersync: ${words}.*\nSee metersync start --help$`),
  });
});

describe('wrong settings end with status 2', () => {
  const wrong = {
    SERVICE_URL: 'service.example',
    DATABASE_URL: 'mysql://u:geheim@h',
    LOG_LEVEL: 'loud',
    WEBHOOK_SECRETS: 'whsec_geheim',
  };

  test('a service ends even if nobody reads its output', async () => {
    const env = { METERSYNC_DIR: folder.path, TEMPORAL_CODEC_KEYS: 'wrong' };
    expect((await runCommand(['worker'], { cwd: folder.path, env, stalled: true })).status).toBe(2);
  });

  test.each(['start', 'receiver', 'worker', 'migrate', 'status', 'audit'])(
    'in %s, which lists them all and quotes no value',
    async (name) => {
      const { status, stdout, stderr } = await metersync([name], wrong);
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      const [first, ...problems] = stderr.split('\n');
      expect(first).toBe('metersync: Wrong settings:');
      expect(problems.map((line) => line.trim().split(/[ :]/)[0]).sort()).toEqual([
        'DATABASE_URL',
        'LOG_LEVEL',
        'SERVICE_API_KEY',
        'SERVICE_URL',
        'WEBHOOK_SECRETS',
      ]);
      expect(stderr).not.toContain('geheim');
    },
  );

  test.each([
    ['that are not set', {}, 'WEBHOOK_SECRETS (or WEBHOOK_SECRETS_FILE) has to be set'],
    [
      'that are invalid',
      { WEBHOOK_SECRETS: 'whsec_geheim' },
      'secret 1 is not whsec_ followed by padded base64',
    ],
  ])('in the receiver, which refuses secrets %s before it opens anything', async (_, env, words) => {
    // Nothing listens at this address. With valid settings the command would wait for Temporal.
    const address = `127.0.0.1:${await freePort()}`;
    const { status, stderr } = await metersync(['receiver'], { TEMPORAL_ADDRESS: address, ...env });
    expect(status).toBe(2);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('geheim');
  });
});

describe('wrong configuration of Temporal ends with status 2', () => {
  test.each([
    ['that is not there', undefined, 'TEMPORAL_CONFIG_FILE has to name a TOML file'],
    [
      'that is not TOML',
      '[profile.default]\napi_key = geheim\n',
      'Invalid TOML document: invalid value, line 2',
    ],
    ['without the profile', '[profile.other]\n', "Profile 'mine' not found"],
  ])('if a file %s, of which no line is quoted', async (_, text, words) => {
    const file = join(folder.path, `temporal-${text?.length}.toml`);
    if (text !== undefined) await writeFile(file, text);
    const env = { TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'mine' };
    const { status, stdout, stderr } = await metersync(['schedule', 'show'], env);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('geheim');
  });
});

describe('a command that only reads creates nothing in a folder without data, and says how to begin', () => {
  test.each([
    [['status'], 'DATABASE_URL'],
    [['doctor'], 'DATABASE_URL'],
    [['report'], 'DATABASE_URL'],
    [['export', 'bills'], 'DATABASE_URL'],
    [['events', 'list'], 'DATABASE_URL'],
    [['audit'], 'DATABASE_URL and SERVICE_URL'],
    [['schedule', 'show'], 'TEMPORAL_ADDRESS'],
    [['backfill', 'all'], 'DATABASE_URL and TEMPORAL_ADDRESS'],
    [['webhooks', 'enable'], 'SERVICE_URL'],
  ])('%s', async (args, unset) => {
    const dir = join(folder.path, 'nothing');
    const { status, stdout, stderr } = await runCommand(args, { env: { METERSYNC_DIR: dir } });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toBe(
      `metersync: ${dir} has no data yet: run npm start (or metersync start) first, or set ${unset}`,
    );
    expect(existsSync(dir)).toBe(false);
  });

  test('webhooks portal starts no sandbox, which would end with the command', async () => {
    const run = await runCommand(['webhooks', 'portal'], { env: { METERSYNC_DIR: folder.path } });
    expect(run).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'metersync: no sandbox is running, so there is no portal: run metersync start first, or set SERVICE_URL',
    });
  });
});

describe('a failed command ends with status 1 and one line that names the problem and its place', () => {
  test.each([['migrate'], ['checks', 'list'], ['audit', '--json']])(
    '%s %s while Postgres is down',
    async (...args) => {
      const place = `127.0.0.1:${await freePort()}/warehouse`;
      const { status, stdout, stderr } = await metersync(args, {
        DATABASE_URL: `postgres://user:geheim@${place}`,
        SERVICE_URL: 'http://127.0.0.1:9/v2.2',
        SERVICE_API_KEY: 'key',
      });
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toMatch(
        new RegExp(
          `^metersync: Postgres at ${place} \\(DATABASE_URL\\) does not answer: connect ECONNREFUSED .+\nWhat to do: Start Postgres, or correct DATABASE_URL.$`,
        ),
      );
    },
  );

  test('webhooks while the service is down', async () => {
    const place = `127.0.0.1:${await freePort()}`;
    const env = { SERVICE_URL: `http://${place}/v2.2`, SERVICE_API_KEY: 'geheim' };
    const { status, stdout, stderr } = await metersync(['webhooks', 'portal', '--json'], env);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      new RegExp(
        `^metersync: GET /external/configure_webhook: connect ECONNREFUSED ${place}\nWhat to do: Nothing at first. If it lasts, check SERVICE_URL, the network and HTTPS_PROXY\\.$`,
      ),
    );
  });
});
