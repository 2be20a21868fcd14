import { sql } from 'drizzle-orm';
import { batches } from '../../contract/limits.ts';
import type { WarehouseHealth } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';

/**
 * Reads how long the last events took from receipt to their row, and to the read of their record.
 * A read of a record counts once, for the first of its events.
 */
export async function readDelays(db: Executor): Promise<WarehouseHealth['delays']> {
  const result = await db.execute<{ step: 'row' | 'record'; p50: number; p99: number }>(sql`
    with newest as materialized (
      select *
      from ${journal}
      order by ${journal.receivedAt} desc
      limit ${sql.raw(String(batches.delaysRead))}
    ), took as (
      select 'row' as step, recorded_at - received_at as took
      from newest
      union all
      select 'record', settled_at - min(received_at)
      from newest
      where outcome = 'applied'
        and settled_at is not null
      group by kind, case kind when 'interval' then id else record_id end, settled_at
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
