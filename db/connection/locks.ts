import { sql } from 'drizzle-orm';
import { migrations } from '../migrate/migrations-table.ts';
import { alerts, alsoListed, companyChanges } from '../schema/metersync.ts';
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
  /** Computing and storing the months of companies. */
  companyChanges: sql`${companyChanges}`,
  /** Migrations, and making typed views. */
  migrations,
} as const;

/**
 * Waits for the lock and holds it until the transaction ends. It excludes other sessions that take it, but
 * neither readers nor writers of the table.
 */
export async function lock(tx: Executor, table: keyof typeof tables): Promise<void> {
  await tx.execute(sql`lock table ${tables[table]} in share update exclusive mode`);
}
