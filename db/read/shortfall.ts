import { sql } from 'drizzle-orm';
import type { WarehouseHealth } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
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
      coalesce(sum(lacking), 0)::float8 as readings
    from (
      select ${journal.lacking}
      from ${journal}
      where ${journal.lacking} is not null
      order by ${journal.recordId}
      limit ${most}
    ) short`,
  );
  return result.rows[0] ?? { events: 0, readings: 0 };
}
