import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { freePort } from '../support/port.ts';

const folder = await forFile(temporaryFolder());
const nobody = `127.0.0.1:${await freePort()}`;

const metersync = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runCommand(args, { cwd: folder.path, env: { METERSYNC_DIR: folder.path, ...env } });

test.each([
  [['fly'], "unknown command 'fly'"],
  [['status', '--fast'], "unknown option '--fast'"],
  [['backfill'], 'choose what to backfill (all, --company ID or --external-id X)'],
  [['backfill', 'all', '--external-id', 'x'], 'only one of these at a time: all, --external-id'],
  [['backfill', 'some'], 'unknown scope some: write all'],
  [['backfill', '--company', 'acme'], 'It must be a UUID.\nSee metersync backfill --help'],
  [['audit', '--settle', '2d'], 'must be at most 1h'],
  [['audit', '--settle', 'hourly'], 'must be a number and s, m, h or d'],
  [['schedule'], 'Usage: metersync schedule'],
  [['schedule', 'pause', 'weekly'], 'Allowed choices are full, reconcile'],
  [['schedule', 'pause'], "missing required argument 'schedule'"],
  [['events', 'list', '--since', 'yesterday'], 'must be a time'],
  [['audit', '--since', '999999d'], 'must be a time'],
  [['events', 'list', '--since', '2026-02-01 (noon)'], 'must be a time'],
  [['events', 'list', '--limit', '0'], 'must be 1 or more.\nSee metersync events list --help'],
  [['events', 'list', '--limit', '9999999999'], 'up to nine digits'],
  [['events', 'replay'], 'choose events by their ids'],
  [['checks', 'list', '--check', 'luck'], 'bill_gap'],
  [['webhooks', 'disable'], '--yes'],
  [['export', 'bills', '--out', 'bills.xlsx'], 'name a file that ends in .csv or .parquet'],
  [['export', 'bills', '--spreadsheet', '--out', 'bills.parquet'], '--spreadsheet is only for CSV'],
  [['start', '--live', '5'], '--live makes changes in the sandbox'],
  [['start', '--temporal-ui'], '--temporal-ui needs the embedded Temporal'],
])('wrong usage ends with status 2 and a message on standard error only: %j', async (args, words) => {
  const { status, stdout, stderr } = await metersync(args, {
    SERVICE_URL: `http://${nobody}/v2.2`,
    SERVICE_API_KEY: 'key',
    TEMPORAL_ADDRESS: nobody,
    DATABASE_URL: `postgres://user@${nobody}/warehouse`,
  });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toContain(words);
  expect(stderr).not.toMatch(/^\s+at /m);
});

describe('wrong settings end with status 2', () => {
  const wrong = {
    SERVICE_URL: 'service.example',
    DATABASE_URL: 'mysql://u:geheim@h',
    LOG_LEVEL: 'loud',
    WEBHOOK_SECRETS: 'whsec_geheim',
  };

  test.each(['start', 'receiver', 'status'])(
    'in %s, which lists them all and quotes no value',
    async (name) => {
      const { status, stdout, stderr } = await metersync([name], wrong);
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      const [first, ...problems] = stderr.split('\n');
      expect(first).toBe('metersync: Wrong settings:');
      expect(problems.map((line) => line.trim().split(/[ :]/)[0]).sort()).toEqual([
        ...['DATABASE_URL', 'LOG_LEVEL', 'SERVICE_API_KEY', 'SERVICE_URL', 'WEBHOOK_SECRETS'],
      ]);
      expect(stderr).not.toContain('geheim');
    },
  );

  test('and a service ends even if nobody reads its output', async () => {
    const env = { METERSYNC_DIR: folder.path, TEMPORAL_CODEC_KEYS: 'wrong' };
    expect((await runCommand(['worker'], { cwd: folder.path, env, stalled: true })).status).toBe(2);
  });

  test('in a receiver without secrets, before it waits for Temporal', async () => {
    const { status, stderr } = await metersync(['receiver'], { TEMPORAL_ADDRESS: nobody });
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining('WEBHOOK_SECRETS (or WEBHOOK_SECRETS_FILE)'),
    ]);
  });

  test.each([
    ['that is not there', undefined, 'TEMPORAL_CONFIG_FILE has to name a TOML file'],
    ['that is not TOML', '[profile.default]\napi_key = geheim\n', 'invalid value, line 2'],
    ['without the profile', '[profile.other]\n', "Profile 'mine' not found"],
  ])("in a file of Temporal's configuration %s, of which no line is quoted", async (_, text, words) => {
    const file = join(folder.path, `temporal-${text?.length}.toml`);
    if (text !== undefined) await writeFile(file, text);
    const env = { TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'mine' };
    const { status, stdout, stderr } = await metersync(['schedule', 'show'], env);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('geheim');
  });
});

test.each([
  [['status'], 'DATABASE_URL'],
  [['audit'], 'DATABASE_URL and SERVICE_URL'],
  [['schedule', 'show'], 'TEMPORAL_ADDRESS'],
  [['backfill', 'all'], 'DATABASE_URL and TEMPORAL_ADDRESS'],
  [['webhooks', 'enable'], 'SERVICE_URL'],
])('%s creates nothing in a folder without data, and says how to begin', async (args, unset) => {
  const dir = join(folder.path, 'nothing');
  expect(await runCommand(args, { env: { METERSYNC_DIR: dir } })).toEqual({
    status: 1,
    stdout: '',
    stderr: `metersync: ${dir} has no data yet: run npm start (or metersync start) first, or set ${unset}`,
  });
  expect(existsSync(dir)).toBe(false);
});

test('webhooks portal starts no sandbox, which would end with the command', async () => {
  expect(await metersync(['webhooks', 'portal'])).toEqual({
    status: 1,
    stdout: '',
    stderr:
      'metersync: no sandbox is running, so there is no portal: run metersync start first, or set SERVICE_URL',
  });
});

test.each([
  [
    ['checks', 'list', '--json'],
    `Postgres at ${nobody}/warehouse (DATABASE_URL) does not answer: connect ECONNREFUSED ${nobody}\nWhat to do: Start Postgres, or correct DATABASE_URL.`,
  ],
  [
    ['webhooks', 'portal', '--json'],
    `GET /external/configure_webhook: connect ECONNREFUSED ${nobody}\nWhat to do: Nothing at first. If it lasts, check SERVICE_URL, the network and HTTPS_PROXY.`,
  ],
])('%s ends with status 1 and names the server that is down', async (args, words) => {
  const env = {
    DATABASE_URL: `postgres://user:geheim@${nobody}/warehouse`,
    SERVICE_URL: `http://${nobody}/v2.2`,
    SERVICE_API_KEY: 'geheim',
  };
  expect(await metersync(args, env)).toEqual({ status: 1, stdout: '', stderr: `metersync: ${words}` });
});
