import { sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import { unlessRecordedAnew, waitingAgain } from '../events/outcomes.ts';
import { eventKind } from '../events/queue.ts';
import { tableOf } from '../resources.ts';
import { journal } from '../schema/metersync.ts';
import type { Cte } from './page.ts';

/** Steps that make missing events pending again if their state or a newer state was read now. */
export const requeueMissing = (
  resource: 'documents' | 'connections',
  seen: readonly string[],
): Cte => sql`missing as materialized (
      select e.id
      from unnest(${array([...seen].sort(), 'text')}) as asked (record_id)
        cross join lateral (
          select id, occurred_at
          from ${journal}
          where aside = 'missing'
            and record_id = asked.record_id
            and kind = ${eventKind[resource]}
          offset 0
          ${unlessRecordedAnew}
        ) e
        cross join lateral (
          select raw_updated
          from ${tableOf(resource)}
          where id = asked.record_id::uuid
          offset 0
        ) r
      where e.occurred_at <= r.raw_updated
    ), requeued as (
      update ${journal} set
        ${waitingAgain}
      where id = any(array(select id from missing))
    )`;
