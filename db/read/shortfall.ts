import { count, isNotNull, sql } from 'drizzle-orm';
import type { WarehouseHealth } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';

/** Reads how many readings are lacking that events reported; `most` rows of events are counted. */
export async function readShortfall(
  db: Executor,
  most: number,
): Promise<WarehouseHealth['intervalShortfall']> {
  const short = db
    .select({ lacking: journal.lacking })
    .from(journal)
    .where(isNotNull(journal.lacking))
    .orderBy(journal.recordId)
    .limit(most)
    .as('short');
  const [found] = await db
    .select({
      events: count(),
      readings: sql<number>`coalesce(sum(${short.lacking}), 0)::float8`,
    })
    .from(short);
  return found ?? { events: 0, readings: 0 };
}
