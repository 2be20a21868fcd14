import { sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { unlessRecordedAnew, waitingAgain } from './outcomes.ts';

/**
 * Makes events due at once that wait because of these failures, and events pending that are missing because
 * of them, in batches. The next wait of each is short again. Returns the number of events.
 */
export async function reviveFailed(
  db: Executor,
  codes: readonly FailureCode[],
  batch: number = batches.eventsRevived,
): Promise<number> {
  let revived = 0;
  for (const revive of [hastenWaiting, reopenMissing])
    for (let found = batch; found >= batch; revived += found)
      found = await revive(db, codes, batch);
  return revived;
}

async function hastenWaiting(
  db: Executor,
  codes: readonly FailureCode[],
  batch: number,
): Promise<number> {
  const { rowCount } = await db.execute(sql`
    update ${journal} set
      due_at = clock_timestamp(),
      attempts = 0
    where id = any(array(
        select failed.id
        from unnest(${array(codes, 'text')}) as asked (code)
          cross join lateral (
            select id
            from ${journal}
            where error_code = asked.code
              and outcome = 'pending'
              and due_at > (select clock_timestamp())
            order by error_code, due_at
            limit ${batch}
            ${unlessRecordedAnew}
          ) failed
        limit ${batch}
      ))`);
  return rowCount ?? 0;
}

async function reopenMissing(
  db: Executor,
  codes: readonly FailureCode[],
  batch: number,
): Promise<number> {
  const { rowCount } = await db.execute(sql`
    update ${journal} set
      ${waitingAgain}
    where id = any(array(
        select id
        from ${journal}
        where aside = 'missing'
          and error_code = any(${array(codes, 'text')})
        order by aside_at
        limit ${batch}
        ${unlessRecordedAnew}
      ))`);
  return rowCount ?? 0;
}
