import { type SQL, sql } from 'drizzle-orm';

/** Binds a whole column of values as one parameter: the protocol counts parameters in 16 bits. */
export function array(
  values: readonly unknown[],
  type: 'text' | 'uuid' | 'timestamptz' | 'int' | 'boolean',
): SQL {
  return sql`${sql.param(values)}::${sql.raw(type)}[]`;
}
