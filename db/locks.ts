import { sql } from 'drizzle-orm';
import type { Executor } from './connect.ts';
import { migrations } from './migrations-table.ts';
import { catchUps, serviceWorkers, typedViews } from './schema/metersync.ts';

/**
 * What one session at a time does, or none while others do the contrary, is held by a lock on a
 * table. Advisory locks would do the same, but every login of the database may take those: a lock
 * on a table, stronger than to read it, may be taken by nobody but who may write the table.
 */
const tables = {
  /** Who records events, and a catch-up that wants to sleep. */
  catchUps: sql`${catchUps}`,
  /** Who migrates. */
  migrations,
  /** Who takes a part of the limit of requests. */
  serviceWorkers: sql`${serviceWorkers}`,
  /** Who makes typed views. */
  typedViews: sql`${typedViews}`,
} as const;

const modes = {
  /** Together with others that write, and with readers. */
  beside: 'row exclusive',
  /** Alone among those that take it, beside readers and writers. */
  inTurn: 'share update exclusive',
  /** Beside readers only. */
  alone: 'share row exclusive',
} as const;

/** Waits for the lock and holds it until the transaction ends. */
export async function lock(
  tx: Executor,
  table: keyof typeof tables,
  mode: keyof typeof modes,
): Promise<void> {
  await tx.execute(sql`lock table ${tables[table]} in ${sql.raw(modes[mode])} mode`);
}
