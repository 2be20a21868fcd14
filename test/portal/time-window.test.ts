import { describe, expect, test } from 'vitest';
import { readWindow, windowOf } from '../../sandbox/portal/time-window.ts';
import { fromText } from '../../sandbox/timestamps.ts';

const now = fromText('2026-07-01T12:00:00');
const chosen = (fields: Record<string, string>) =>
  windowOf(readWindow(new URLSearchParams(fields), 'any'), now);

describe('a choice of time', () => {
  test('counts back from the service’s current time', () => {
    expect(chosen({ when: '1h' })).toEqual({ from: '2026-07-01T11:00:00.000000', until: null });
    expect(chosen({ when: '24h' })).toEqual({ from: '2026-06-30T12:00:00.000000', until: null });
    expect(chosen({ when: '7d' })).toEqual({ from: '2026-06-24T12:00:00.000000', until: null });
  });

  test('is any time if it is absent or unknown', () => {
    for (const when of ['', 'any', 'toString', '99d'])
      expect(chosen({ when })).toEqual({ from: null, until: null });
  });

  test('accepts what browsers send for a date and time, with and without seconds', () => {
    expect(chosen({ when: 'custom', from: '2026-06-30T08:00', until: '2026-06-30T09:30:15' })).toEqual({
      from: '2026-06-30T08:00:00.000000',
      until: '2026-06-30T09:30:15.000000',
    });
    expect(chosen({ when: 'custom', until: '2026-06-30T09:30' })).toMatchObject({ from: null });
  });

  test.each([
    [{ from: '', until: '' }, 'Choose when'],
    [{ from: 'yesterday', until: '' }, 'Write times'],
    [{ from: '2026-02-31T00:00', until: '' }, 'Write times'],
    [{ from: '2026-06-30T10:00', until: '2026-06-30T10:00' }, 'must end after'],
    [{ from: '2026-06-30T10:00', until: '2026-06-29T10:00' }, 'must end after'],
  ])('says what is wrong with %j', (fields, words) => {
    expect(chosen({ when: 'custom', ...fields })).toEqual({ wrong: expect.stringContaining(words) });
  });
});
