import { sql } from 'drizzle-orm';
import { migrations } from '../migrate/migrations-table.ts';
import { alerts, alsoListed, catchUps, companyChanges } from '../schema/metersync.ts';
import type { Executor } from './connect.ts';

/**
 * Tables whose locks keep sessions apart. Any login can take an advisory lock, but only a login
 * that may write to a table can take a lock on it that is stronger than a reader's.
 */
const tables = {
  /** The looks of the watch, one each minute. */
  alerts: sql`${alerts}`,
  /** Ending what companies list, so that the last of two companies sees what the first has left. */
  alsoListed: sql`${alsoListed}`,
  /** Recording events, which excludes a catch-up that is about to sleep. */
  catchUps: sql`${catchUps}`,
  /** Computing and storing the months of companies. */
  companyChanges: sql`${companyChanges}`,
  /** Migrations, and making typed views. */
  migrations,
} as const;

const modes = {
  /** Shared with other writers, and with readers. */
  beside: 'row exclusive',
  /** Excludes other sessions that take it, but neither readers nor writers. */
  inTurn: 'share update exclusive',
  /** Excludes everything except readers. */
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
