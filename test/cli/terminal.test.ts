import fc from 'fast-check';
import { expect, test } from 'vitest';
import { paragraph, table } from '../../cli/terminal.ts';

test('a paragraph is not wider than the terminal, and contains every word', () => {
  const words = fc.array(fc.stringMatching(/^[a-z]{1,12}$/), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(
      words,
      fc.constantFrom('', '17  error    '),
      fc.constantFrom(40, 80, 120),
      (all, lead, columns) => {
        const lines = paragraph(lead, all.join(' '), columns);
        expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(columns);
        expect(lines.map((line) => line.slice(lead.length)).join(' ')).toBe(all.join(' '));
      },
    ),
  );
});

test('digits of an account are a text, which is aligned left', () => {
  expect(table(['account'], [['42'], ['0420']]).at(3)).toBe('│ 42      │');
});

test('a paragraph is indented below its beginning in a terminal, and is one line elsewhere', () => {
  const text = 'one two three four five six seven eight nine ten eleven twelve';
  expect(paragraph('7  error  ', text, 40)).toEqual([
    '7  error  one two three four five six',
    '          seven eight nine ten eleven',
    '          twelve',
  ]);
  expect(paragraph('7  error  ', text, undefined)).toEqual([`7  error  ${text}`]);
});
