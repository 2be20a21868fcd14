import { sql } from 'drizzle-orm';
import { eventKind, keyOf } from '../catch-up/stale.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { staleRecords } from '../schema/metersync.ts';

/**
 * Reads a company's due records, those that have been due longest first, and the warehouse's clock
 * before anything is read. Raw because every catch-up of a company begins with it. Measured: 0.06
 * ms and 5 blocks for one record; 0.18 ms and 43 blocks for nine.
 */
export async function dueRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  limit: number,
): Promise<{ readAt: string; due: string[] }> {
  const { rows } = await hot(db, 'dueRecords').execute<{
    now: string;
    id: string | null;
  }>(sql`
    select clock.now, due.record_id as id
    from (select clock_timestamp()::text as now) clock
      left join lateral (
        select record_id, due_at
        from ${staleRecords}
        where queue = ${keyOf(eventKind[kind], companyId)}
          and due_at <= clock_timestamp()
        order by due_at, record_id
        limit ${limit}
      ) due on true
    order by due.due_at, due.record_id`);
  const due = rows.flatMap(({ id }) => id ?? []);
  return { readAt: rows[0]?.now ?? '', due };
}
