import { sql } from 'drizzle-orm';

/**
 * Keeps the planner from merging a subquery into the query around it: `.offset(fence)`. The builder leaves
 * out an offset of 0, so this is the SQL for it.
 */
export const fence = sql`0` as unknown as number;
