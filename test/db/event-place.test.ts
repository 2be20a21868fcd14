import fc from 'fast-check';
import { expect, test } from 'vitest';
import { placeText, readPlace } from '../../db/read/events.ts';

test('a place is read as it was printed, and fits into a URL', () => {
  const at = fc.constantFrom('2026-05-01 00:00:00.000001+00', '12026-05-01 10:20:30+05:30', 'infinity');
  const text = fc.string({ unit: 'grapheme' }).filter((value) => !value.includes('\0'));
  fc.assert(
    fc.property(at, text, (at, id) => {
      const spelled = placeText({ at, id });
      expect(encodeURIComponent(spelled)).toBe(spelled);
      expect(readPlace(spelled)).toEqual({ at, id });
    }),
  );
});

test('a text that is not a place is refused', () => {
  const spelled = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const time = '2026-05-01 00:00:00+00';
  for (const value of [
    null,
    {},
    [time],
    [time, 'id', 'more'],
    ['yesterday', 'id'],
    [time, 1],
    [time, 'nul\0'],
  ])
    expect(readPlace(spelled(value)), JSON.stringify(value)).toBeUndefined();
  for (const text of ['', 'msg_1', '!', '%00']) expect(readPlace(text), text).toBeUndefined();
});
