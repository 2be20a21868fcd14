import { type SQL, sql } from 'drizzle-orm';

/** UUIDs as Postgres prints them, whatever case the service writes them in. */
export const printedUuids = (ids: readonly (string | null)[]): string[] =>
  ids.flatMap((id) => (id === null ? [] : [id.toLowerCase()]));

/** Binds a whole column of values as one parameter: the protocol counts parameters in 16 bits. */
export function array(
  values: readonly unknown[],
  type: 'text' | 'uuid' | 'timestamptz' | 'int' | 'boolean',
): SQL {
  return sql`${sql.param(values)}::${sql.raw(type)}[]`;
}
