import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { removedSettings } from '../../app/settings/removed-settings.ts';
import { readSettings } from '../../app/settings/settings.ts';

test('names a setting of an earlier version, and what to do instead', () => {
  expect(readSettings({ MAKE_SCHEDULES: 'off' }).warnings).toEqual([
    expect.stringMatching(/^MAKE_SCHEDULES no longer has an effect: set BACKFILL_CRON and RECONCILE_EVERY/),
  ]);
});

test('names the former limit of requests per second', () => {
  expect(readSettings({ SERVICE_MAX_PER_SECOND: '20' }).warnings).toEqual([
    expect.stringMatching(/^SERVICE_MAX_PER_SECOND no longer has an effect: lower SERVICE_MAX_CONCURRENCY/),
  ]);
});

test.each([
  ['NOTIFY_URLS', 'pagerduty://geheim', /set NOTIFY_URL for Slack/],
  ['NOTIFY_URLS_FILE', '/geheim', /set NOTIFY_URL for Slack/],
  ['CONSOLE_PASSWORDS_FILE', '/geheim', /put a proxy that asks for passwords before the console/],
  ['JOURNAL_PAYLOAD_DAYS', 'geheim', /set RETENTION_DAYS/],
  ['RUNS_DAYS', 'geheim', /set RETENTION_DAYS/],
  ['PLAINTEXT_HOSTS', 'geheim', /set STRICT_TLS to outside/],
  ['SECRETS_DIR', '/geheim', /name each file, for example DATABASE_URL_FILE=/],
])('refuses %s without quoting it', (name, value, instead) => {
  const read = () => readSettings({ [name]: value });
  expect(read).toThrow(
    new RegExp(`^Wrong settings:\\n {2}${name} no longer has an effect: ${instead.source}`),
  );
  expect(read).not.toThrow(/geheim/);
});

/** The settings that the documentation of 0.1.0 lists, and its secrets, which can also be in files. */
const settingsOfFirstRelease = `
  SERVICE_URL SERVICE_API_KEY SERVICE_COMPANIES SERVICE_TIME_ZONE SERVICE_MAX_CONCURRENCY
  SERVICE_MAX_PER_SECOND SERVICE_ENDPOINTS DELETES_CAP_ROWS DELETES_CAP_PERCENT JOURNAL_PAYLOAD_DAYS
  RUNS_DAYS WEBHOOK_SECRETS WEBHOOK_SECRETS_FILE WEBHOOK_HEADER_PREFIX WEBHOOK_TOLERANCE_SECONDS
  DATABASE_URL TEMPORAL_ADDRESS TEMPORAL_PROFILE TEMPORAL_CONFIG_FILE STRICT_TLS PLAINTEXT_HOSTS
  NODE_TLS_REJECT_UNAUTHORIZED RECONCILE_DAYS CHECKS_OFF TEMPORAL_CODEC_KEYS TEMPORAL_PLAINTEXT
  TEMPORAL_DEPLOYMENT_NAME TEMPORAL_WORKER_BUILD_ID MAKE_SCHEDULES RECEIVER_HOST RECEIVER_PORT
  METRICS_HOST METRICS_PORT CONSOLE_HOST CONSOLE_PORT CONSOLE_PASSWORDS_FILE CONSOLE_USER_HEADER
  CONSOLE_TRUSTED_PROXIES CONSOLE_OPERATORS TEMPORAL_UI_URL METERSYNC_ACTOR RECEIVER_PUBLIC_URL
  SILENCE_HOURS NOTIFY_URLS NOTIFY_SECRET HEARTBEAT_URL LOG_LEVEL METERSYNC_DIR SECRETS_DIR
`;
const secretsOfFirstRelease =
  'SERVICE_API_KEY DATABASE_URL TEMPORAL_API_KEY TEMPORAL_CODEC_KEYS NOTIFY_URLS NOTIFY_SECRET HEARTBEAT_URL';

test('each setting of 0.1.0 still exists, or is named with what to do instead', () => {
  const files = secretsOfFirstRelease.split(' ').map((name) => `${name}_FILE`);
  const names = [...settingsOfFirstRelease.trim().split(/\s+/), ...files];
  const today = new Set(
    readFileSync('docs/reference/settings.md', 'utf8').match(/(?<=`)[A-Z][A-Z_0-9]+(?=`)/g),
  );
  const isSetting = (name: string) => today.has(name) || today.has(name.replace(/_FILE$/, ''));
  const isNamed = (name: string) => {
    const { problems, warnings } = removedSettings({ [name]: 'x' });
    return [...problems, ...warnings].length === 1;
  };
  expect(names.filter((name) => isSetting(name) === isNamed(name))).toEqual([]);
});
