import { describe, expect, test } from 'vitest';
import { exactTime, readableTime, relativeTime } from '../../sandbox/portal/relative-time.ts';
import { fromText } from '../../sandbox/timestamps.ts';

const now = fromText('2026-07-01T12:00:00');

describe('a timestamp in words', () => {
  test.each([
    ['2026-07-01T12:00:00.000000', 'just now'],
    ['2026-07-01T11:59:59.400000', 'just now'],
    ['2026-07-01T11:59:58.000000', '2 seconds ago'],
    ['2026-07-01T11:59:00.000000', '1 minute ago'],
    ['2026-07-01T10:30:00.000000', '1 hour ago'],
    ['2026-06-24T12:00:00.000000', '7 days ago'],
    ['2026-07-01T17:00:00.000000', 'in 5 hours'],
    ['2026-07-08T11:59:00.000000', 'in 6 days'],
  ])('is for %s the words %s at noon', (at, words) => {
    expect(relativeTime(at, now)).toBe(words);
  });

  test('can also be written exactly, for a reader or with its microseconds', () => {
    expect(readableTime('2026-07-01T09:05:07.123456')).toBe('1 Jul 2026, 09:05:07 UTC');
    expect(exactTime('2026-07-01T09:05:07.123456')).toBe('2026-07-01 09:05:07.123456 UTC');
  });
});
