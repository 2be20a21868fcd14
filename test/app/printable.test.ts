import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printable, printableValue } from '../../app/process/printable.ts';
import { steering } from '../support/steering.ts';
import { anyCharacter } from '../support/text.ts';

describe('untrusted text for a terminal', () => {
  test.each([
    ['a window title', 'x\u001b]0;OWNED\u0007', String.raw`x\u001b]0;OWNED\u0007`],
    ['a link', '\u001b]8;;http://a\u001b\\b', String.raw`\u001b]8;;http://a\u001b\b`],
    ['controls of the second set', 'a\u009b2J\u0085', String.raw`a\u009b2J\u0085`],
    ['a line of its own', 'a\r\nbackfill: complete', String.raw`a\r\nbackfill: complete`],
    ['other ends of lines', 'a\u2028b\u2029\u000b\f', String.raw`a\u2028b\u2029\u000b\f`],
    ['delete and tab', '\u007f\t', String.raw`\u007f\t`],
    ['text turned around', 'invoice\u202efdp.exe\u2066\u2069', String.raw`invoice\u202efdp.exe\u2066\u2069`],
    ['what has no width', 'pay\u200bpal\ufeff\u115f\u00ad', String.raw`pay\u200bpal\ufeff\u115f\u00ad`],
    ['tags beyond the basic plane', '\u{e0041}', String.raw`\udb40\udc41`],
    ['half of a pair', '\ud83d!', String.raw`\ud83d!`],
  ])('is escaped if it contains %s', (_name, text, escaped) => {
    expect(printable(text)).toBe(escaped);
  });

  test('stays unchanged if it is words of any script or emoji', () => {
    const text = 'Ærø – 東京電力 – كهرباء – חשמל – ❤️ 🔌 "a\\b"';
    expect(printable(text)).toBe(text);
  });
});

test('escaped text controls nothing, and escaping it again changes nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      const escaped = printable(text);
      expect(steering(escaped)).toEqual([]);
      expect(escaped).not.toContain('\n');
      expect(printable(escaped)).toBe(escaped);
    }),
  );
});

test('escaped JSON is the same JSON', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: anyCharacter }), (text) => {
      const oneLine = JSON.stringify(JSON.parse(text));
      expect(JSON.parse(printable(oneLine))).toEqual(JSON.parse(text));
    }),
  );
});

test('escapes every text and field name in a value, and keeps the lines of a stack', () => {
  const value = { 'a\u001b': ['b\n', { stack: 'Error: c\u009b\n    at d' }], e: 1, f: null };
  expect(printableValue(value)).toEqual({
    'a\\u001b': ['b\\n', { stack: 'Error: c\\u009b\n    at d' }],
    e: 1,
    f: null,
  });
});
