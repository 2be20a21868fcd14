import { type SQL, sql } from 'drizzle-orm';
import type { RecordColumn, Resource, TypedField } from '../resources.ts';

/** Maximum length of the text that is kept of a field, in characters. `raw` has the whole text. */
const keptMax = 200;

/** A typed field, and the column that holds its value if there is one. */
interface Field extends TypedField {
  readonly held?: SQL | undefined;
  /** Whether the column may hold a value from elsewhere, such as the owner or the existing row. */
  readonly isShared?: boolean;
}

/**
 * The fields of a record `r` that could not be read, with their texts, as JSON; NULL if there are
 * none. `held` returns the column with a field's value, which saves parsing it again.
 */
export function unreadableOf(
  { parts }: Pick<Resource, 'parts'>,
  columns: readonly RecordColumn[],
  held?: (column: RecordColumn) => Pick<Field, 'held' | 'isShared'>,
): SQL {
  const fields: Field[] = [
    ...columns.flatMap((one) => (one.from ? { ...one.from, ...held?.(one) } : [])),
    ...parts,
  ];
  if (fields.length === 0) return sql`null::jsonb`;
  const lines = fields.map(
    (one) => sql`${sql.raw(`'${one.field}'`)}, case when ${isWrong(one)} then ${kept(one)} end`,
  );
  return sql`nullif(
      jsonb_strip_nulls(
        jsonb_build_object(
          ${sql.join(lines, sql`,\n          `)}
        )
      ),
      '{}'
    )`;
}

/** Adds the `replaced` texts of a record to its fields that could not be read. */
export const withReplaced = (unreadable: SQL): SQL =>
  sql`nullif(coalesce(${unreadable}, '{}') || coalesce(replaced, '{}'), '{}')`;

/** The text of a field as it is stored; NULL for a blank text, which is not a value. */
const kept = ({ sent }: Field): SQL =>
  sql`nullif(left(btrim(${sent}, ${sql.raw(`e' \\t\\n\\v\\f\\r'`)}), ${sql.raw(String(keptMax))}), '')`;

/** Whether a field contains text that is not a value. The cheapest conditions come first. */
function isWrong({ sent, value, held, isShared }: Field): SQL {
  if (held === undefined) return sql`${sent} <> '' and ${value} is null`;
  if (!isShared) return sql`${held} is null and ${sent} <> ''`;
  return sql`${sent} <> ''
          and ${sent} is distinct from ${held}::text
          and ${value} is null`;
}
