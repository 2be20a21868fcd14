import { sql } from 'drizzle-orm';
import { type Database, lock, withTransaction } from '../connection/connect.ts';
import { companyChanges } from '../schema/metersync.ts';

/**
 * Computes the months of companies whose records changed, in one transaction, until none is left or
 * the time is over. Returns the number of companies.
 */
export async function keepMonths(
  db: Database,
  { budgetSeconds }: { readonly budgetSeconds: number },
): Promise<number> {
  return await withTransaction(db, async (tx) => {
    await lock(tx, companyChanges);
    const [done] = await tx
      .select({ kept: sql<number>`kept` })
      .from(sql`metersync.keep_months(make_interval(secs => ${budgetSeconds})) as kept`);
    return done?.kept ?? 0;
  });
}
