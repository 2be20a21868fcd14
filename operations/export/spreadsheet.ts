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

/**
 * Matches what a spreadsheet may run: `= + - @`, also in full width, after characters that it skips, at the
 * start of a text or after a separator of cells in some locale. Postgres and JavaScript can read it.
 */
const formula = String.raw`(^|[;,|\t\n\r])([\u0001-\u0008\u000b\u000c\u000e-\u0020"\u007f-\u00a0\u200b-\u200f\u2028-\u202f\u2060\u3000\ufeff]*[-=+@\u2212\uff1d\uff0b\uff0d\uff20])`;
/** Matches texts that begin with a character that ends a cell. */
const cellEnd = String.raw`^[\t\n\r]`;

/** Selects the columns for a spreadsheet. An apostrophe precedes every part of a text that it might run. */
export const guardedColumns = (columns: readonly RelationColumn[]): SQL =>
  sql.join(
    columns.map(({ name, type }) => {
      const column = sql.identifier(name);
      if (safeTypes.has(type)) return sql`${column} as ${sql.identifier(guarded(name))}`;
      const text = sql`${column}::text`;
      // No parameters, because the query is part of COPY, which takes none.
      const start = sql`case when ${text} ~ '${sql.raw(cellEnd)}' then '''' else '' end`;
      const rest = sql`regexp_replace(${text}, '${sql.raw(formula)}', '\\1''\\2', 'g')`;
      return sql`${start} || ${rest} as ${sql.identifier(guarded(name))}`;
    }),
    sql`, `,
  );

const formulas = new RegExp(formula, 'gu');
const endsCell = new RegExp(cellEnd, 'u');
const guarded = (name: string): string =>
  `${endsCell.test(name) ? "'" : ''}${name.replaceAll(formulas, "$1'$2")}`;
