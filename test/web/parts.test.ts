import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { visibleText } from '../../web/parts.ts';
import { anyCharacter } from '../support/text.ts';

describe('text that a reader can trust', () => {
  test.each([
    ['right-to-left override', 'invoice\u202efdp.exe', String.raw`invoice\u202efdp.exe`],
    ['isolates', 'a\u2066b\u2069', String.raw`a\u2066b\u2069`],
    ['zero-width space', 'pay\u200bpal', String.raw`pay\u200bpal`],
    ['NUL and escape', '\u0000\u001b[31m', String.raw`\u0000\u001b[31m`],
    ['tags beyond the basic plane', '\u{e0041}', String.raw`\udb40\udc41`],
    ['half of a pair', '\ud83d!', String.raw`\ud83d!`],
    ['carriage return', 'a\rb', String.raw`a\u000db`],
  ])('shows a %s as its escape', (_name, text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });

  test('leaves words of every script, emoji, tabs and lines unchanged', () => {
    const text = 'Ærø – 東京電力 – كهرباء – חשמל – 🔌\n\tend';
    expect(visibleText(text)).toBe(text);
  });

  test('contains no hidden character, and is unchanged a second time', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        const shown = visibleText(text);
        expect(visibleText(shown)).toBe(shown);
      }),
    );
  });
});
