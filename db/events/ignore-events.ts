import { and, eq, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';

/**
 * Marks dead events as ignored. They keep their bytes and errors until retention, and a replay still tries
 * them. Returns the ids of the events that were dead.
 */
export async function ignoreEvents(db: Executor, ids: readonly string[]): Promise<string[]> {
  const ignored = await db
    .update(journal)
    .set({ outcome: 'ignored' })
    .where(and(sql`${journal.id} = any(${array(ids, 'text')})`, eq(journal.outcome, 'dead')))
    .returning({ id: journal.id });
  return ignored.map(({ id }) => id);
}
