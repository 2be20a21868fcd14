import { type SQL, sql } from 'drizzle-orm';
import type { RelationColumn } from '../../db/read/relations.ts';

/** Types without free text: their values stay numbers and dates, and none is a formula. */
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
 * Matches texts that a spreadsheet may run: `= + - @`, also full-width, after the characters that it skips;
 * and characters that end a cell. Both Postgres and JavaScript can read the pattern.
 */
const formula = String.raw`^([\u0001-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202f\u2060\u3000\ufeff]*[-=+@\u2212\uff1d\uff0b\uff0d\uff20]|[\u0009\u000a\u000d])`;

/** Selects the columns of a relation for a spreadsheet, with an apostrophe before texts that it would run. */
export const guardedColumns = (columns: readonly RelationColumn[]): SQL =>
  sql.join(
    columns.map(({ name, type }) => {
      const column = sql.identifier(name);
      if (safeTypes.has(type)) return sql`${column} as ${sql.identifier(guarded(name))}`;
      const text = sql`${column}::text`;
      // No parameters: the query is part of COPY, which takes none.
      return sql`case when ${text} ~ '${sql.raw(formula)}' then '''' || ${text} else ${text} end as ${sql.identifier(guarded(name))}`;
    }),
    sql`, `,
  );

const formulaName = new RegExp(formula, 'u');
const guarded = (name: string): string => (formulaName.test(name) ? `'${name}` : name);
