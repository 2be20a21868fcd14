import { sql } from 'drizzle-orm';
import { batches } from '../../contract/limits.ts';
import type { WarehouseHealth } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, settlements } from '../schema/metersync.ts';

/**
 * Reads how long the last events took from receipt to their row, and to the read of their record.
 * A read of a record counts once, for the first of its events.
 */
export async function readDelays(db: Executor): Promise<WarehouseHealth['delays']> {
  const result = await db.execute<{ step: 'row' | 'record'; p50: number; p99: number }>(sql`
    with newest as (
      select
        'row' as step,
        ${journal.recordedAt} - ${journal.receivedAt} as took
      from ${journal}
      order by ${journal.receivedAt} desc
      limit ${sql.raw(String(batches.delaysRead))}
    ), settled as (
      select
        ${settlements.kind},
        ${settlements.recordId},
        ${settlements.since},
        ${settlements.readAt},
        ${settlements.settledAt},
        ${settlements.outcome}
      from ${settlements}
      order by ${settlements.settledAt} desc
      limit ${sql.raw(String(batches.delaysRead))}
    ), took as (
      select * from newest
      union all
      select
        'record',
        settled.settled_at - first.received_at
      from settled
        cross join lateral (
          (
            select ${journal.receivedAt}
            from ${journal}
            where settled.outcome = 'applied'
              and settled.kind <> 'interval'
              and ${journal.recordId} = settled.record_id
              and ${journal.recordedAt} between settled.since and settled.read_at
            order by ${journal.recordedAt}
            limit 1
          )
          union all
          select ${journal.receivedAt}
          from ${journal}
          where settled.outcome = 'applied'
            and settled.kind = 'interval'
            and ${journal.id} = settled.record_id
        ) first
    )
    select
      step,
      percentile_cont(0.5) within group (order by extract(epoch from took)::float8) as p50,
      percentile_cont(0.99) within group (order by extract(epoch from took)::float8) as p99
    from took
    group by step`);
  const of = (step: 'row' | 'record') => {
    const found = result.rows.find((row) => row.step === step);
    return found === undefined ? null : { p50: found.p50, p99: found.p99 };
  };
  return { row: of('row'), record: of('record') };
}
