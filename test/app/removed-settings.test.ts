import { expect, test } from 'vitest';
import { readSettings } from '../../app/settings.ts';

test('names a setting of an earlier version, and what to do instead', () => {
  expect(readSettings({ MAKE_SCHEDULES: 'off' }).doubts).toEqual([
    expect.stringMatching(/^MAKE_SCHEDULES no longer has an effect: set BACKFILL_CRON and RECONCILE_EVERY/),
  ]);
});

test('refuses a setting of an earlier version without which alarms reach nobody', () => {
  expect(() => readSettings({ NOTIFY_URLS: 'pagerduty://key1' })).toThrow(
    /^Wrong settings:\n {2}NOTIFY_URLS no longer has an effect: set NOTIFY_URL for Slack/,
  );
});
