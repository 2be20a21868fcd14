import { type SQL, sql } from 'drizzle-orm';
import type { RelationColumn } from '../../db/read/relations.ts';

/** Types without free text: their values stay numbers and dates, and none of them is a formula. */
const safeTypes: ReadonlySet<string> = new Set([
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'real',
  'double precision',
  'boolean',
  'uuid',
  'date',
  'timestamp with time zone',
  'timestamp without time zone',
]);

/** Number of rows of a sheet, the first of which has the names. */
export const sheetRowsMax = 1_048_576;

/** Number of UTF-16 units that a cell holds. */
const cellMax = 32_767;
/** Characters that are kept of a longer text: there is room for the note, and for pairs of surrogates. */
const [keptMax, keptMaxOfPairs] = [32_700, 16_300];

/** Characters that spreadsheets skip before they look at what a text is. */
const skipped = String.raw`[\u0001-\u0008\u000b\u000c\u000e-\u0020"\u007f-\u00a0\u200b-\u200f\u2028-\u202f\u2060\u3000\ufeff]*`;
/**
 * Matches what a spreadsheet may run: `= + - @`, also in full width, after characters that it skips, at the
 * start of a text or after a separator of cells in some locale. Postgres and JavaScript can read it.
 */
const formula = String.raw`(^|[;,|\t\n\r])(${skipped}[-=+@\u2212\uff1d\uff0b\uff0d\uff20])`;
/** Matches texts that begin with a character that ends a cell. */
const cellEnd = String.raw`^[\t\n\r]`;

const month =
  '(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)';
/**
 * Matches texts that a spreadsheet would turn into a number, a time or a truth value and show in another way,
 * such as 00012345, 1E5, 1-2 or MAR1. Whole numbers of at most 15 digits stay as they are.
 */
const converted = [
  `^(?!(0|[1-9][0-9]{0,14})$)${skipped}(`,
  '(true|false)|',
  `[(]?[$€£¥]? ?[.,]?[0-9][0-9.,:/ +%()$€£¥edapmtz-]*|`,
  `([0-9]{1,4}[ .,/-]*)?${month}[ .,/-]*[0-9]{1,4}([ .,/-]+[0-9]{1,4})?|`,
  `[0-9]{1,4}[ .,/-]*${month}`,
  `)${skipped}$`,
].join('');

/** Characters that no cell can hold, and what stands for each of them: ESC is shown as ␛. */
const uncellable = [
  ...[...Array(32).keys()].filter((code) => ![0, 9, 10, 13].includes(code)),
  0xfffe,
  0xffff,
];
const shownAs = uncellable.map((code) => (code < 32 ? 0x2400 + code : 0xfffd));

/**
 * Selects the columns for a spreadsheet. An apostrophe precedes every part of a text that it might run, and
 * every text that it would show in another way. Control characters are shown as symbols, and texts that are
 * too long for a cell are shortened and say so.
 */
export const guardedColumns = (columns: readonly RelationColumn[]): SQL =>
  sql.join(
    columns.map(({ name, type }) => {
      const column = sql.identifier(name);
      const value = safeTypes.has(type) ? sql`${column}` : cellOf(sql`${column}::text`);
      return sql`${value} as ${sql.identifier(guarded(name))}`;
    }),
    sql`, `,
  );

/** Writes texts into the statement: no parameters, because the query is part of COPY, which takes none. */
const literal = (text: string): SQL => sql.raw(`'${text.replaceAll("'", "''")}'`);
const charactersOf = (codes: readonly number[]): SQL => literal(String.fromCharCode(...codes));

function cellOf(text: SQL): SQL {
  const start = sql`case when ${text} ~ ${literal(cellEnd)} or ${text} ~* ${literal(converted)} then '''' else '' end`;
  const rest = sql`regexp_replace(${text}, ${literal(formula)}, '\\1''\\2', 'g')`;
  const cell = sql`translate(${start} || ${rest}, ${charactersOf(uncellable)}, ${charactersOf(shownAs)})`;
  const pairs = sql`regexp_count(${cell}, '[\\U00010000-\\U0010ffff]')`;
  const [max, kept, keptOfPairs] = [cellMax, keptMax, keptMaxOfPairs].map((count) => sql.raw(String(count)));
  // Apostrophes at most double the length, so few texts have to be measured exactly.
  return sql`case
    when 2 * octet_length(${text}) <= ${max} then ${cell}
    when length(${cell}) + ${pairs} <= ${max} then ${cell}
    else left(${cell}, case when ${pairs} > 0 then ${keptOfPairs} else ${kept} end)
      || ' … [shortened from ' || length(${text}) || ' characters]'
  end`;
}

const formulas = new RegExp(formula, 'gu');
const changes = new RegExp(`${cellEnd}|${converted}`, 'iu');
const symbols = new Map(
  uncellable.map((code, place) => [String.fromCharCode(code), String.fromCharCode(shownAs[place] ?? code)]),
);
const guarded = (name: string): string => {
  const start = changes.test(name) ? "'" : '';
  const cell = `${start}${name.replaceAll(formulas, "$1'$2")}`;
  return Array.from(cell, (character) => symbols.get(character) ?? character).join('');
};
