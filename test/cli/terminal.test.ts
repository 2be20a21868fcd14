import fc from 'fast-check';
import { expect, test } from 'vitest';
import { paragraph, table, tableOf } from '../../cli/terminal.ts';

const id = '0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f';
const widest = (lines: readonly string[]): number => Math.max(...lines.map((line) => line.length));

test('a table is not wider than the terminal, and contains every word', () => {
  const words = fc.array(fc.stringMatching(/^[a-z]{1,12}$/), { maxLength: 40 });
  fc.assert(
    fc.property(
      fc.array(words, { minLength: 1, maxLength: 5 }),
      fc.constantFrom(80, 120),
      (cells, columns) => {
        const lines = table(
          cells.map((_, column) => `c${column}`),
          [cells.map((cell) => cell.join(' '))],
          columns,
        );
        expect(widest(lines)).toBeLessThanOrEqual(columns);
        const shown = lines
          .slice(2)
          .join(' ')
          .split(/[│\s]+/);
        expect(shown.filter((word) => /[a-z]/.test(word)).toSorted()).toEqual(cells.flat().toSorted());
      },
    ),
  );
});

test('numbers are aligned right, including counts in words, but not account numbers', () => {
  const counts = table(
    ['rows', 'count'],
    [
      ['sites', 20],
      ['readings', '10,000+'],
      ['bills', '12,804+'],
    ],
  );
  expect(counts.filter((line) => line.includes('│')).map((line) => line.slice(-5))).toEqual([
    'unt │',
    ' 20 │',
    '00+ │',
    '04+ │',
  ]);
  expect(table(['account'], [['42'], ['0420']]).at(3)).toBe('│ 42      │');
});

test('ids and numbers are not broken as long as other texts can be', () => {
  const text = 'The bill charges more than its lines come to. '.repeat(5);
  const lines = table(['id', 'rows', 'what'], [[id, 1_234_567, text]], 80);
  expect(widest(lines)).toBeLessThanOrEqual(80);
  expect(lines.join('\n')).toContain(`│ ${id} │ 1,234,567 │`);
});

test('no text is broken if there is no terminal', () => {
  const text = 'word '.repeat(100).trim();
  expect(table(['id', 'what'], [[id, text]], undefined).join('\n')).toContain(`│ ${id} │ ${text} │`);
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

test('prints the first of several tables that fits', () => {
  const wide = { head: ['run', 'company'], rows: [[id, id]] };
  const narrow = { head: ['run and company'], rows: [[[id, id]]] };
  expect(tableOf([wide, narrow], 120)).toEqual(table(wide.head, wide.rows));
  expect(tableOf([wide, narrow], undefined)).toEqual(table(wide.head, wide.rows));
  expect(tableOf([wide, narrow], 60)).toEqual(table(narrow.head, narrow.rows));
});
