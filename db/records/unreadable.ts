import { type SQL, sql } from 'drizzle-orm';
import type { RecordColumn, Resource, TypedField } from '../resources.ts';

/** Longest text of a field that is kept, in characters: `raw` has all of it. */
const keptMax = 200;

/**
 * The fields of a record `r` that could not be read, each with its text, as one value; NULL for
 * none. `held` names a column that already holds what was read, which saves a second parsing.
 */
export function unreadableOf(
  { parts }: Pick<Resource, 'parts'>,
  columns: readonly RecordColumn[],
  held?: (column: RecordColumn) => SQL | undefined,
): SQL {
  const fields = [
    ...columns.flatMap((one) => (one.from ? { ...one.from, held: held?.(one) } : [])),
    ...parts.map((part) => ({ ...part, held: undefined })),
  ];
  if (fields.length === 0) return sql`null::jsonb`;
  const isWrong = ({ said, value, held }: TypedField & { readonly held: SQL | undefined }): SQL =>
    held === undefined
      ? sql`${said} <> '' and ${value} is null`
      : sql`${held} is null and ${said} <> ''`;
  // Most records are read whole: only others are looked at field by field.
  return sql`case
      when ${sql.join(fields.map(isWrong), sql`\n        or `)}
        then (
          select jsonb_object_agg(field, left(said, ${sql.raw(String(keptMax))}))
          from (
            values ${sql.join(
              fields.map(
                ({ field, said, value }) =>
                  sql`(${sql.raw(`'${field}'`)}, ${said}, ${value} is null)`,
              ),
              sql`,\n              `,
            )}
          ) as fields (field, said, is_lacking)
          where is_lacking
            and said ~ '[^ \\t\\n\\v\\f\\r]'
        )
    end`;
}
