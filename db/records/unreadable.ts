import { type SQL, sql } from 'drizzle-orm';
import type { RecordColumn, Resource, TypedField } from '../resources.ts';

/** Longest text of a field that is kept, in characters: `raw` has all of it. */
const keptMax = 200;

/** A typed field, with the column that holds its value, if one does. */
interface Field extends TypedField {
  readonly held?: SQL | undefined;
  /** Whether the column may also hold another value: an owner, or what events and rows have. */
  readonly isShared?: boolean;
}

/**
 * The fields of a record `r` that could not be read, each with its text, as one value; NULL for
 * none. `held` is a column of the record as it was read, which saves a second parsing.
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

/** The text of a field as it is stored; NULL for a blank text, which is not a value. */
const kept = ({ sent }: Field): SQL =>
  sql`nullif(left(btrim(${sent}, ${sql.raw(`e' \\t\\n\\v\\f\\r'`)}), ${sql.raw(String(keptMax))}), '')`;

/** Whether a field contains something that is not a value; the cheapest conditions first. */
function isWrong({ sent, value, held, isShared }: Field): SQL {
  if (held === undefined) return sql`${sent} <> '' and ${value} is null`;
  if (!isShared) return sql`${held} is null and ${sent} <> ''`;
  return sql`${sent} <> ''
          and ${sent} is distinct from ${held}::text
          and ${value} is null`;
}
