import { and, desc, eq, isNotNull, sql } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { batches } from '../../contract/limits.ts';
import type { WarehouseHealth } from '../../health/measured.ts';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';

/**
 * Reads how long the last events took from receipt to their row, and to the read of their record.
 * A read of a record counts once, for the first of its events.
 */
export async function readDelays(db: Executor): Promise<WarehouseHealth['delays']> {
  const { receivedAt, recordedAt, settledAt, outcome, kind, id, recordId } = journal;
  const newest = db
    .$with('newest')
    .as(
      db
        .select({ receivedAt, recordedAt, settledAt, outcome, kind, id, recordId })
        .from(journal)
        .orderBy(desc(receivedAt))
        .limit(literal(batches.delaysRead)),
    );
  const rows = db
    .select({
      step: sql<'row' | 'record'>`'row'`.as('step'),
      took: sql`recorded_at - received_at`.as('took'),
    })
    .from(newest);
  const records = db
    .select({ step: sql<'row' | 'record'>`'record'`, took: sql`settled_at - min(received_at)` })
    .from(newest)
    .where(and(eq(newest.outcome, 'applied'), isNotNull(newest.settledAt)))
    .groupBy(sql`kind, case kind when 'interval' then id else record_id end, settled_at`);
  const took = unionAll(rows, records).as('took');
  const percentile = (share: number) => sql<number>`percentile_cont(${share}::float8)
    within group (order by extract(epoch from ${took.took})::float8)`;
  const delays = await db
    .with(newest)
    .select({ step: took.step, p50: percentile(0.5), p99: percentile(0.99) })
    .from(took)
    .groupBy(took.step);
  const of = (step: 'row' | 'record') => {
    const found = delays.find((row) => row.step === step);
    return found === undefined ? null : { p50: found.p50, p99: found.p99 };
  };
  return { row: of('row'), record: of('record') };
}
