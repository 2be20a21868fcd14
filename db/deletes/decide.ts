import { and, desc, eq, max, sql } from 'drizzle-orm';
import type { Database, Executor } from '../connect.ts';
import { namesOfRecords } from '../read/names.ts';
import { type RecordResource, recordResources, tableOf } from '../resources.ts';
import { deletes } from '../schema/metersync.ts';
import { untouchedSince } from './absent.ts';
import { approveReadings, reviveReadings } from './absent-readings.ts';
import { keyOfNoted, note, revive, row, tombstone } from './tombstone.ts';

type State = typeof deletes.$inferSelect.state;

/** Inferred deletions of one listing in one run, in one state. */
export interface InferredDeletes {
  readonly runId: string;
  readonly companyId: string | null;
  /** The name of the company, if it has one. */
  readonly company: string | null;
  readonly resource: string;
  readonly state: State;
  /** Whether the rows were absent from a listing, or listed as deleted. */
  readonly reason: typeof deletes.$inferSelect.reason;
  readonly rows: number;
  readonly notedAt: string;
  /** Some of their ids. */
  readonly examples: readonly string[];
  /** What people call each of them; null where it has no name. */
  readonly names: readonly (string | null)[];
}

/** Reads inferred deletions, the newest first: quarantined ones or all, of all runs or one. */
export async function readDeletes(
  db: Executor,
  { all, run }: { readonly all: boolean; readonly run?: string },
): Promise<InferredDeletes[]> {
  const { runId, companyId, resource, state, reason, recordId, notedAt } = deletes;
  const found = await db
    .select({
      runId,
      companyId,
      resource,
      state,
      reason,
      rows: sql<number>`sum(coalesce(${deletes.readings}, 1))::int`,
      notedAt: sql<string>`${max(notedAt)}`,
      examples: sql<string[]>`(array_agg(${recordId} order by ${recordId}))[1:3]`,
    })
    .from(deletes)
    .where(
      and(
        all ? undefined : sql`${state} = 'quarantined'`,
        run === undefined ? undefined : eq(runId, run),
      ),
    )
    .groupBy(runId, companyId, resource, state, reason)
    .orderBy(desc(max(notedAt)), resource, companyId);
  const ofCompany = (id: string) => ({ resource: 'companies', id });
  const nameOf = await namesOfRecords(
    db,
    found.flatMap((of) => [
      ...(of.companyId === null ? [] : [ofCompany(of.companyId)]),
      ...of.examples.map((id) => ({ resource: of.resource, id })),
    ]),
  );
  return found.map((of) => ({
    ...of,
    company: of.companyId === null ? null : nameOf(ofCompany(of.companyId)),
    names: of.examples.map((id) => nameOf({ resource: of.resource, id })),
  }));
}

/**
 * Tombstones what a run quarantined, except rows touched since they were absent: those leave the
 * quarantine, and the next backfill judges them again.
 */
export async function approveDeletes(
  db: Database,
  runId: string,
): Promise<{ tombstoned: number; spared: number }> {
  return await db.transaction(async (tx) => {
    const readings = await approveReadings(tx, runId);
    let tombstoned = readings.removed;
    let waiting = readings.removed + readings.spared;
    for (const resource of recordResources) {
      waiting += await lockNotes(tx, runId, resource, 'quarantined');
      const which = sql`${note.state} = 'quarantined'
        and ${row.deletedAt} is null
        and ${untouchedSince(resource, sql`${note.absentSince}`)}`;
      tombstoned += await tombstone(tx, runId, resource, which);
      await noteTombstoned(tx, runId, resource);
    }
    await tx.delete(deletes).where(and(eq(deletes.runId, runId), eq(deletes.state, 'quarantined')));
    return { tombstoned, spared: waiting - tombstoned };
  });
}

/** Keeps what a run quarantined. No later run tombstones it unless an operator approves. */
export async function rejectDeletes(db: Executor, runId: string): Promise<{ kept: number }> {
  return { kept: await decide(db, runId, 'quarantined', 'rejected') };
}

/**
 * Revives what a run tombstoned, unless something else tombstoned it since; later runs ask first.
 */
export async function undoDeletes(db: Database, runId: string): Promise<{ revived: number }> {
  return await db.transaction(async (tx) => {
    let revived = await reviveReadings(tx, runId);
    for (const resource of recordResources) {
      await lockNotes(tx, runId, resource, 'applied');
      revived += await revive(tx, runId, resource);
    }
    await decide(tx, runId, 'applied', 'undone');
    return { revived };
  });
}

/** Locks a run's notes of a resource in the order of their ids; returns how many there are. */
async function lockNotes(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  state: State,
): Promise<number> {
  const locked = await tx
    .select({ recordId: deletes.recordId })
    .from(deletes)
    .where(and(eq(deletes.runId, runId), eq(deletes.resource, resource), eq(deletes.state, state)))
    .orderBy(deletes.recordId)
    .for('update');
  return locked.length;
}

/** Marks the quarantined rows that are tombstoned now as applied. */
async function noteTombstoned(
  tx: Executor,
  runId: string,
  resource: RecordResource,
): Promise<void> {
  await tx
    .update(note)
    .set({ state: 'applied', decidedAt: sql`clock_timestamp()` })
    .where(sql`${note.runId} = ${runId}::uuid
      and ${note.resource} = ${resource}
      and ${note.state} = 'quarantined'
      and ${note.reason} = (
        select ${row.deletedReason}
        from ${tableOf(resource)} ${row}
        where ${row.id} = ${keyOfNoted(resource)}
      )`);
}

/** Moves all notes of a run from one state to another; returns how many rows they name. */
async function decide(db: Executor, runId: string, from: State, to: State): Promise<number> {
  const decided = await db
    .update(deletes)
    .set({ state: to, decidedAt: sql`clock_timestamp()` })
    .where(and(eq(deletes.runId, runId), eq(deletes.state, from)))
    .returning({ readings: deletes.readings });
  return decided.reduce((rows, { readings }) => rows + (readings ?? 1), 0);
}
