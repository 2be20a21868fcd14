import { sql } from 'drizzle-orm';
import type { SingleEndpoint } from '../../contract/endpoints.ts';
import { batches } from '../../contract/limits.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { closedEndpoints } from '../events/gates.ts';
import { isDeletion } from '../events/items.ts';
import { eventKind, queueOf } from '../events/queue.ts';
import { journal } from '../schema/metersync.ts';

/** Records to read, and the warehouse's clock before anything is read. */
export interface DueRecords {
  readonly readAt: string;
  readonly due: readonly string[];
  /** Those of them of which events say only that they were deleted. */
  readonly deleted: readonly string[];
  /** Endpoints with a closed gate. */
  readonly closed: readonly SingleEndpoint[];
}

/**
 * Reads the records of a company's due events, those that have been due longest first, and the
 * warehouse's clock before anything is read. Raw because every catch-up of a company begins with it.
 * Measured: 0.06 ms and 5 blocks for one record; 0.18 ms and 43 blocks for nine.
 */
export async function dueRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  limit: number,
): Promise<DueRecords> {
  const { rows } = await hot(db, 'dueRecords').execute<{
    now: string;
    id: string | null;
    deletes: boolean;
    closed: SingleEndpoint[];
  }>(sql`
    select clock.now, due.record_id as id, due.deletes, ${closedEndpoints} as closed
    from (select clock_timestamp()::text as now) clock
      left join lateral (
        select record_id, min(due_at) as due_at, bool_and(${isDeletion(sql`type`)}) as deletes
        from (
          select record_id, type, due_at
          from ${journal}
          where queue = ${queueOf(eventKind[kind], companyId)}
            and due_at <= (select clock_timestamp())
          order by due_at
          limit ${limit * batches.eventsOfRecord}
        ) events
        group by record_id
        order by due_at, record_id
        limit ${limit}
      ) due on true
    order by due.due_at, due.record_id`);
  return {
    readAt: rows[0]?.now ?? '',
    due: rows.flatMap(({ id }) => id ?? []),
    deleted: rows.flatMap(({ id, deletes }) => (deletes ? (id ?? []) : [])),
    closed: rows[0]?.closed ?? [],
  };
}
