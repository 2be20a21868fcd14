import { expect, test } from 'vitest';
import { readSettings } from '../../app/settings/settings.ts';

test('names a setting of an earlier version, and what to do instead', () => {
  expect(readSettings({ MAKE_SCHEDULES: 'off' }).warnings).toEqual([
    expect.stringMatching(/^MAKE_SCHEDULES no longer has an effect: set BACKFILL_CRON and RECONCILE_EVERY/),
  ]);
});

test('names the former limit of requests a second', () => {
  expect(readSettings({ SERVICE_MAX_PER_SECOND: '20' }).warnings).toEqual([
    expect.stringMatching(/^SERVICE_MAX_PER_SECOND no longer has an effect: lower SERVICE_MAX_CONCURRENCY/),
  ]);
});

test.each([
  ['NOTIFY_URLS', 'pagerduty://geheim', /set NOTIFY_URL for Slack/],
  ['JOURNAL_PAYLOAD_DAYS', 'geheim', /set RETENTION_DAYS/],
  ['RUNS_DAYS', 'geheim', /set RETENTION_DAYS/],
  ['PLAINTEXT_HOSTS', 'geheim', /set STRICT_TLS to outside/],
  ['SECRETS_DIR', '/geheim', /name each file, for example DATABASE_URL_FILE=/],
])('refuses %s, and does not quote it', (name, value, instead) => {
  const read = () => readSettings({ [name]: value });
  expect(read).toThrow(
    new RegExp(`^Wrong settings:\\n {2}${name} no longer has an effect: ${instead.source}`),
  );
  expect(read).not.toThrow(/geheim/);
});
