import { sql } from 'drizzle-orm';
import { comparable, type WantedRecord } from '../catch-up/due.ts';
import { eventKind, keyOf } from '../catch-up/stale.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { tableOf } from '../resources.ts';
import { staleRecords } from '../schema/metersync.ts';

/**
 * Reads a company's due records, longest due first, and the warehouse's clock before anything is
 * read. Raw because every catch-up of a company begins with it. Measured: 0.06 ms and 5 blocks for
 * one record; 0.18 ms and 43 blocks for nine.
 */
export async function dueRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  limit: number,
): Promise<{ readAt: string; due: WantedRecord[] }> {
  const { rows } = await hot(db, 'dueRecords').execute<{
    now: string;
    id: string | null;
    key: string | null;
  }>(sql`
    select clock.now, due.record_id as id, ${comparable(sql`existing.created`)} as key
    from (select clock_timestamp()::text as now) clock
      left join lateral (
        select record_id, due_at
        from ${staleRecords}
        where queue = ${keyOf(eventKind[kind], companyId)}
          and due_at <= clock_timestamp()
        order by due_at, record_id
        limit ${limit}
      ) due on true
      left join lateral (
        select created
        from ${tableOf(kind)}
        where id = due.record_id::uuid
        offset 0
      ) existing on true
    order by due.due_at, due.record_id`);
  const due = rows.flatMap(({ id, key }) => (id === null ? [] : [{ id, key }]));
  return { readAt: rows[0]?.now ?? '', due };
}
