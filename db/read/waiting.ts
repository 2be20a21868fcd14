import { type SQL, sql } from 'drizzle-orm';
import { recordEventKinds } from '../../contract/event.ts';
import { type FailureCode, failureTypes } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import type { LateWork } from '../../health/measured.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, staleRecords } from '../schema/metersync.ts';
import { cut } from './counted.ts';

/** Events that were postponed for the same failure. */
export interface WaitingEvents {
  readonly code: FailureCode;
  /** One of its error messages. */
  readonly reason: string;
  readonly events: number;
  /** Companies, and for intervals meters, of the events. */
  readonly owners: number;
  /** When the first of them are tried again. */
  readonly nextAttemptAt: string | null;
}

/**
 * Adds up events that wait for failures, by failure, in at most so many records of each. They are added
 * up by owner first: that can be hashed, where a count of distinct owners sorts all.
 */
export const eventsThatFailed = (codes: readonly string[], most: number): SQL => sql`
      select
        codes.code,
        min(owned.error) as reason,
        sum(owned.events) as events,
        count(*) as owners,
        0 as parts,
        min(owned.since) as since,
        min(owned.due_at) as next_attempt_at
      from unnest(${array(codes, 'text')}) as codes (code)
        cross join lateral (
          select
            min(waiting.error) as error,
            sum(waiting.events) as events,
            min(waiting.since) as since,
            min(waiting.due_at) as due_at
          from (
            select
              ${staleRecords.error},
              ${staleRecords.events},
              ${staleRecords.owner},
              ${staleRecords.since},
              ${staleRecords.dueAt}
            from ${staleRecords}
            where ${staleRecords.errorCode} = codes.code
            order by ${staleRecords.dueAt}
            limit ${most}
          ) waiting
          group by waiting.owner
        ) owned
      group by codes.code`;

/** Counts pending events that failed, by failure, most first. */
export async function readWaiting(db: Executor, most: number): Promise<WaitingEvents[]> {
  const result = await db.execute<WaitingEvents & Record<string, unknown>>(sql`
    select
      code,
      reason,
      ${cut(sql`events`, most)} as events,
      owners::int as owners,
      next_attempt_at::text as "nextAttemptAt"
    from (${eventsThatFailed(Object.keys(failureTypes), most)}
    ) failed
    order by 3 desc, code`);
  return result.rows;
}

/**
 * Reads whether reads still settle events, and why most of the pending ones wait. An event that was
 * settled lately is looked for among those received last, those received before the longest due record of
 * each kind, as that is where catch-ups work, and those that had waited for over a day.
 */
export async function readLateWork(db: Executor, most: number): Promise<LateWork> {
  const looked = sql.raw(String(batches.settledSearched));
  const { rows } = await db.execute<{ seconds: number | null }>(sql`
    select extract(epoch from clock_timestamp() - max(settled_at))::float8 as seconds
    from (
      (
        select ${journal.settledAt}
        from ${journal}
        order by ${journal.receivedAt} desc
        limit ${looked}
      )
      union all
      (
        select ${journal.asideAt}
        from ${journal}
        where ${journal.aside} = 'late'
        order by ${journal.asideAt} desc
        limit 1
      )
      union all
      select earlier.settled_at
      from unnest(${array(recordEventKinds, 'text')}) as kinds (kind)
        cross join lateral (
          select ${staleRecords.since}
          from ${staleRecords}
          where ${staleRecords.kind} = kinds.kind
          order by ${staleRecords.dueAt}
          limit 1
        ) due
        cross join lateral (
          select ${journal.settledAt}
          from ${journal}
          where ${journal.receivedAt} <= due.since
          order by ${journal.receivedAt} desc
          limit ${looked}
        ) earlier
    ) settled`);
  const [first] = await readWaiting(db, most);
  return {
    settledSecondsAgo: rows[0]?.seconds ?? null,
    reason: first === undefined ? null : { code: first.code, events: first.events },
  };
}
