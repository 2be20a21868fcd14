import { sql } from 'drizzle-orm';
import type { WarehouseHealth } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { settlements } from '../schema/metersync.ts';
import type { Most } from './counted.ts';

/** Reads how many readings are lacking that events reported; `most` rows of events are counted. */
export async function readShortfall(
  db: Executor,
  most: Most,
): Promise<WarehouseHealth['intervalShortfall']> {
  const result = await db.execute<WarehouseHealth['intervalShortfall'] & Record<string, unknown>>(
    sql`
    select
      count(*)::int as events,
      coalesce(sum(intervals_reported - intervals_found), 0)::float8 as readings
    from (
      select
        ${settlements.intervalsReported},
        ${settlements.intervalsFound}
      from ${settlements}
      where ${settlements.intervalsFound} < ${settlements.intervalsReported}
      order by ${settlements.owner}
      limit ${most}
    ) short`,
  );
  return result.rows[0] ?? { events: 0, readings: 0 };
}
