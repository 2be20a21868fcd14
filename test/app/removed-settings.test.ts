import { expect, test } from 'vitest';
import { readSettings } from '../../app/settings.ts';

test('names a setting of an earlier version, and what to do instead', () => {
  expect(readSettings({ SERVICE_MAX_PER_SECOND: '20' }).doubts).toEqual([
    expect.stringMatching(/^SERVICE_MAX_PER_SECOND no longer has an effect: lower SERVICE_MAX_CONCURRENCY/),
  ]);
});
