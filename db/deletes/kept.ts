import { and, desc, eq, inArray, max, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { operations } from '../schema/metersync.ts';
import { keeps } from './absence.ts';
import { note, rowsOfNote } from './tombstone.ts';

/** A decision by which rows stay although the service no longer has them. */
export type KeptBy = Awaited<ReturnType<typeof readKeptBy>>[number];

/** Reads the decisions that keep rows of a company, or of all companies, the newest first. */
export async function readKeptBy(db: Executor, companyId?: string) {
  const decision = ['deletes reject', 'deletes undo'] as const;
  // The name of the table is written out, because Drizzle leaves it out here.
  const actor = db
    .select({ actor: operations.actor })
    .from(operations)
    .where(
      and(
        inArray(operations.action, [...decision]),
        sql`${operations.target} ->> 'run' = note.run_id::text`,
      ),
    )
    .orderBy(desc(operations.id))
    .limit(1);
  const decidedAt = max(note.decidedAt);
  return await db
    .select({
      runId: note.runId,
      state: note.state,
      /** Who decided, according to the log of operations; null if the log does not say. */
      by: sql<string | null>`(${actor})`,
      at: decidedAt,
      rows: sql<number>`sum(${rowsOfNote})::int`,
    })
    .from(note)
    .where(and(keeps, companyId === undefined ? undefined : eq(note.companyId, companyId)))
    .groupBy(note.runId, note.state)
    .orderBy(desc(decidedAt), note.runId);
}
