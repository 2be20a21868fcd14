import { sql } from 'drizzle-orm';
import { type Database, withTransaction } from './connect.ts';
import { lock } from './locks.ts';

/**
 * Keeps the months of companies whose records changed at least `quietSeconds` ago, in one
 * transaction. Views of months work out the others for each question.
 * @returns how many companies; fewer than `companiesMax` when none is left
 */
export async function keepMonths(
  db: Database,
  { companiesMax, quietSeconds }: { readonly companiesMax: number; readonly quietSeconds: number },
): Promise<number> {
  return await withTransaction(db, async (tx) => {
    await lock(tx, 'companyMonths', 'inTurn');
    const { rows } = await tx.execute<{ kept: number }>(sql`
      select metersync.keep_months(
        ${companiesMax},
        make_interval(secs => ${quietSeconds})
      ) as kept`);
    return rows[0]?.kept ?? 0;
  });
}
