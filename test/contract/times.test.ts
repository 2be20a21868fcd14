import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatSeconds, formatTime, rfc3339, timeAgo } from '../../contract/times.ts';

describe('a time that Postgres printed', () => {
  test.each([
    ['2026-11-22 02:32:53.016137+00', '2026-11-22T02:32:53.016137Z', '2026-11-22 02:32:53Z'],
    ['2026-11-22 02:32:53+00', '2026-11-22T02:32:53Z', '2026-11-22 02:32:53Z'],
    ['2026-11-22 02:32:53.5+05:30', '2026-11-22T02:32:53.5+05:30', '2026-11-21 21:02:53Z'],
    ['2026-11-22 02:32:53-08', '2026-11-22T02:32:53-08:00', '2026-11-22 10:32:53Z'],
    ['2026-11-22T03:20:58.026Z', '2026-11-22T03:20:58.026Z', '2026-11-22 03:20:58Z'],
  ])('is RFC 3339 for programs and precise to the second for people: %s', (text, json, people) => {
    expect([rfc3339(text), formatTime(text)]).toEqual([json, people]);
  });

  test('keeps every digit of its fraction in RFC 3339', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^\d{1,9}$/), (digits) => {
        const json = rfc3339(`2026-11-22 02:32:53.${digits}+00`);
        expect(json).toBe(`2026-11-22T02:32:53.${digits}Z`);
        expect(rfc3339(json)).toBe(json);
      }),
    );
  });

  test('is printed with how long ago it was, or how long it will take', () => {
    const now = Date.parse('2026-11-22T02:34:06Z');
    expect(timeAgo('2026-11-22 02:32:53.016137+00', now)).toBe('2026-11-22 02:32:53Z (73 s ago)');
    expect(timeAgo('2026-11-22 05:34:06+00', now)).toBe('2026-11-22 05:34:06Z (in 3 h)');
    expect([90, 119.6, 7_000, 90_000, 864_000].map(formatSeconds)).toEqual([
      '90 s',
      '120 s',
      '117 min',
      '25 h',
      '10 days',
    ]);
  });
});

test.each(['infinity', '', '2026-11-22', 'since 2026-11-22 02:32:53+00', '2026-11-22 02:32:53'])(
  'a text that is not a time is unchanged: %j',
  (text) => expect([rfc3339(text), formatTime(text), timeAgo(text)]).toEqual([text, text, text]),
);
