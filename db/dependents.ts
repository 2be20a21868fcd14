import { sql } from 'drizzle-orm';
import type { Transaction } from './connect.ts';
import { sqlState } from './failures.ts';

const dependentsExist = '2BP01';

/**
 * Drops a view or a function. If something was built on it, it stays, and Postgres's description of
 * the dependents is returned: `view mine depends on view analytics.bills`.
 */
export async function dropUnlessUsed(tx: Transaction, what: string): Promise<string[]> {
  try {
    await tx.transaction((part) => part.execute(sql.raw(`drop ${what}`)));
    return [];
  } catch (error) {
    if (sqlState(error) !== dependentsExist) throw error;
    // Drizzle's error wraps that of Postgres.
    const { detail = '' } = ((error as Error).cause ?? error) as { detail?: string };
    return detail.split('\n');
  }
}
