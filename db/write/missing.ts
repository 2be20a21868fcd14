import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { hasOutcome } from '../waiting.ts';

/** A record is seen after all, in a state as new as events told of in vain: they wait to be settled again. */
export async function lookAgain(
  tx: Executor,
  kind: 'document' | 'connection',
  seen: readonly { readonly id: string }[],
): Promise<void> {
  const ids = seen.map(({ id }) => id);
  const table = kind === 'document' ? sql`utility.documents` : sql`utility.connections`;
  await tx.execute(sql`
    update metersync.events e
    set outcome = 'pending', applied_at = null, attempts = 0, next_attempt_at = null, error = null, error_code = null
    where ${hasOutcome('missing')} and kind = ${kind} and record_id = any(${array(ids, 'text')})
      and occurred_at <= (select raw_updated from ${table} r where r.id = e.record_id::uuid)`);
}
