import { expect, test } from 'vitest';
import { readSettings } from '../../app/settings.ts';

test('names a setting of an earlier version, and what to do instead', () => {
  expect(readSettings({ MAKE_SCHEDULES: 'off' }).doubts).toEqual([
    expect.stringMatching(/^MAKE_SCHEDULES no longer has an effect: set BACKFILL_CRON and RECONCILE_EVERY/),
  ]);
});
