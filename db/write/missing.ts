import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';

/** A record is seen after all: events that told of it in vain wait to be settled again. */
export async function lookAgain(
  tx: Executor,
  kind: 'document' | 'connection',
  seen: readonly { readonly id: string }[],
): Promise<void> {
  const ids = seen.map(({ id }) => id);
  await tx.execute(sql`
    update metersync.events
    set outcome = 'pending', applied_at = null, attempts = 0, next_attempt_at = null, error = null, error_code = null
    where outcome = 'missing' and kind = ${kind} and record_id = any(${array(ids, 'text')})`);
}
