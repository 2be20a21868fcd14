import { sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { events, journal } from '../schema/metersync.ts';

/**
 * Notes dead events as ignored, since nothing can apply them. They keep their bytes and errors until
 * retention, and a replay still tries them. Returns the ids of those that were dead.
 */
export async function ignoreEvents(db: Executor, ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    update ${journal} e
    set arrived_as = 'ignored',
      error = dead.error,
      error_code = dead.error_code
    from unnest(${array(ids, 'text')}) as asked (id)
      cross join lateral (
        select existing.error, existing.error_code
        from ${events} existing
        where existing.id = asked.id
          and existing.outcome = 'dead'
        offset 0
      ) dead
    where e.id = asked.id
    returning e.id`);
  return rows.map(({ id }) => id);
}
