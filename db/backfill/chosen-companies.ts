import { and, eq, gt, not, sql } from 'drizzle-orm';
import { array, isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { runCompanies } from '../schema/metersync.ts';

/**
 * Chooses companies for a run that is about to begin. Their number has no bound, so neither
 * arguments nor workflow histories hold the ids.
 */
export async function chooseCompanies(
  db: Executor,
  runId: string,
  ids: readonly string[],
): Promise<void> {
  await db
    .insert(runCompanies)
    .select(
      db
        .selectDistinct({
          runId: sql`${runId}::uuid`.as('run_id'),
          companyId: sql`id`.as('company_id'),
          refused: sql`false`.as('refused'),
        })
        .from(sql`unnest(${array(ids, 'uuid')}) id`),
    )
    .onConflictDoUpdate({
      target: [runCompanies.runId, runCompanies.companyId],
      set: { refused: false },
    });
}

/** Whether companies were chosen for a run; if not, it reads all. */
export async function isOfChosen(db: Executor, runId: string): Promise<boolean> {
  const chosen = await db
    .select({ companyId: runCompanies.companyId })
    .from(runCompanies)
    .where(eq(runCompanies.runId, runId))
    .limit(1);
  return chosen.length > 0;
}

/** Lists companies chosen for a run, in order, after the given one. */
export async function chosenAfter(
  db: Executor,
  runId: string,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const { companyId } = runCompanies;
  const next = await db
    .select({ companyId })
    .from(runCompanies)
    .where(and(eq(runCompanies.runId, runId), after === null ? undefined : gt(companyId, after)))
    .orderBy(companyId)
    .limit(limit);
  return next.map((row) => row.companyId);
}

/** Notes which chosen companies the service does not have. */
export async function refuseChosen(
  db: Executor,
  runId: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await db
    .update(runCompanies)
    .set({ refused: true })
    .where(and(eq(runCompanies.runId, runId), isAmong(runCompanies.companyId, ids, 'uuid')));
}

/** Lists the chosen companies that the service has, in order. */
export async function chosenCompanies(db: Executor, runId: string): Promise<string[]> {
  const { companyId, refused } = runCompanies;
  const chosen = await db
    .select({ companyId })
    .from(runCompanies)
    .where(and(eq(runCompanies.runId, runId), not(refused)))
    .orderBy(companyId);
  return chosen.map((row) => row.companyId);
}
