import { and, eq, gt, inArray, not, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { array, isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { runCompanies } from '../schema/metersync.ts';

/** Stores the companies chosen for a run, which may be too many for a workflow's arguments. */
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

/** Whether companies were chosen for a run. Otherwise the run reads all companies. */
export async function isOfChosen(db: Executor, runId: string): Promise<boolean> {
  const chosen = await db
    .select({ companyId: runCompanies.companyId })
    .from(runCompanies)
    .where(eq(runCompanies.runId, runId))
    .limit(1);
  return chosen.length > 0;
}

/** Lists companies chosen for a run, in the order of their ids, after the given company. */
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

/** Whether a company was chosen for a run, and the service has it. */
export const isChosen = (db: Executor, runId: string, companyId: PgColumn): SQL =>
  inArray(
    companyId,
    db
      .select({ companyId: runCompanies.companyId })
      .from(runCompanies)
      .where(and(eq(runCompanies.runId, runId), not(runCompanies.refused))),
  );
