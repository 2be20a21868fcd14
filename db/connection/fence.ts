import { sql } from 'drizzle-orm';

/**
 * Zero, for `offset` of a subquery that Postgres is not to merge into its query. The query builder leaves out a
 * number 0.
 */
export const fence = sql.raw('0') as unknown as number;
