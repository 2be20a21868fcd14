import { expect, test } from 'vitest';
import { exactTime, readableTime, readWindow, relativeTime, windowOf } from '../../sandbox/portal/parts.ts';
import { fromText } from '../../sandbox/time.ts';

const now = fromText('2026-07-01T12:00:00');

test.each([
  ['2026-07-01T11:59:59.400000', 'just now'],
  ['2026-07-01T11:59:58.000000', '2 seconds ago'],
  ['2026-07-01T10:30:00.000000', '1 hour ago'],
  ['2026-06-24T12:00:00.000000', '7 days ago'],
  ['2026-07-08T11:59:00.000000', 'in 6 days'],
])('describes %s at noon as %s', (at, words) => {
  expect(relativeTime(at, now)).toBe(words);
});

test('writes a timestamp to the second, or with its microseconds', () => {
  expect(readableTime('2026-07-01T09:05:07.123456')).toBe('1 Jul 2026, 09:05:07 UTC');
  expect(exactTime('2026-07-01T09:05:07.123456')).toBe('2026-07-01 09:05:07.123456 UTC');
});

const any = { from: null, until: null };
test.each([
  [{ when: '1h' }, { from: '2026-07-01T11:00:00.000000', until: null }],
  [{ when: '7d' }, { from: '2026-06-24T12:00:00.000000', until: null }],
  [{}, any],
  [{ when: 'toString' }, any],
  [
    { when: 'custom', from: '2026-06-30T08:00', until: '2026-06-30T09:30:15' },
    { from: '2026-06-30T08:00:00.000000', until: '2026-06-30T09:30:15.000000' },
  ],
  [
    { when: 'custom', until: '2026-06-30T09:30' },
    { from: null, until: '2026-06-30T09:30:00.000000' },
  ],
  [{ when: 'custom' }, { wrong: expect.stringContaining('Choose when') }],
  [{ when: 'custom', from: 'yesterday' }, { wrong: expect.stringContaining('Write times') }],
  [{ when: 'custom', from: '2026-02-31T00:00' }, { wrong: expect.stringContaining('Write times') }],
  [
    { when: 'custom', from: '2026-06-30T10:00', until: '2026-06-30T10:00' },
    { wrong: expect.stringContaining('must end after') },
  ],
])('reads the choice of time %j', (fields, window) => {
  expect(windowOf(readWindow(new URLSearchParams(fields), 'any'), now)).toEqual(window);
});
