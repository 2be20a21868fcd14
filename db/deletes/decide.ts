import { and, desc, eq, inArray, isNull, max, ne, type SQL, sql } from 'drizzle-orm';
import { isAmong } from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { approveReadings, reviveReadings } from '../readings/removed.ts';
import { companyOf, namesOfRecords, type RecordKey } from '../records/names.ts';
import { type RecordResource, recordResources, row } from '../resources.ts';
import { deletes, runs } from '../schema/reads.ts';
import { needsNoDecision, stillAbsent, waits } from './absence.ts';
import { decidedToKeep, note, revive, rowsOfNote, tombstone } from './tombstone.ts';

type State = typeof deletes.$inferSelect.state;

/** Inferred deletions of one listing in one run, in one state. */
export type InferredDeletes = Awaited<ReturnType<typeof readDeletes>>[number];

/** What a note is about: the id of a record, or a range of a meter's readings. */
const idOfNote = sql`case
        when ${note.meterId} is null then ${note.recordId}
        else concat(
          ${note.meterId},
          to_char(${note.startsFrom} at time zone 'UTC', ' YYYY-MM-DD HH24:MI'),
          to_char(${note.startsBefore} at time zone 'UTC', ' "to" YYYY-MM-DD HH24:MI "UTC"')
        )
      end`;

/** The record that gives a note its name. For readings it is their meter. */
const subjectOfNote = sql`jsonb_build_object(
        'resource', case when ${note.meterId} is null then ${note.resource} else 'meters' end,
        'id', coalesce(${note.meterId}, ${note.recordId})
      )`;

/** Reads inferred deletions, newest first; without `all`, only what waits for a decision. */
export async function readDeletes(
  db: Executor,
  { all, run }: { readonly all: boolean; readonly run?: string },
) {
  const { runId, companyId, resource, state, reason, recordId, notedAt } = note;
  const found = await db
    .select({
      runId,
      // Whether this is a run with a page. A catch-up or a repair notes what it finds under an id
      // of its own. The name of the table is written out, because Drizzle leaves it out here.
      isRun: sql<boolean>`exists (select from ${runs} r where r.run_id = note.run_id offset 0)`,
      companyId,
      resource,
      state,
      /** Whether the rows were absent from a listing, or listed as deleted. */
      reason,
      rows: sql<number>`sum(${rowsOfNote})::int`,
      notedAt: sql<string>`${max(notedAt)}`,
      /** Some of their ids. For readings, some of the ranges, each after the id of the meter. */
      examples: sql<string[]>`(array_agg(${idOfNote} order by ${recordId}))[1:3]`,
      subjects: sql<RecordKey[]>`to_jsonb((array_agg(${subjectOfNote} order by ${recordId}))[1:3])`,
    })
    .from(note)
    .where(
      and(
        all ? sql`(${state} <> 'quarantined' or ${waits})` : waits,
        run === undefined ? undefined : eq(runId, run),
      ),
    )
    .groupBy(runId, companyId, resource, state, reason)
    .orderBy(desc(max(notedAt)), resource, companyId);
  const nameOf = await namesOfRecords(
    db,
    found.flatMap((of) => [...companyOf(of), ...of.subjects]),
  );
  return found.map(({ subjects, ...of }) => ({
    ...of,
    company: companyOf(of).map(nameOf)[0] ?? null,
    /** The name of each example, or of its meter; null if there is no name. */
    names: subjects.map(nameOf),
  }));
}

/**
 * Tombstones the rows that a run quarantined, except rows that were touched since they were found
 * absent. Such rows leave the quarantine, and the next backfill judges them again.
 */
export async function approveDeletes(
  db: Database,
  runId: string,
): Promise<{ tombstoned: number; spared: number }> {
  const approved = await withTransaction(db, async (tx) => {
    const readings = await approveReadings(tx, runId);
    // Usage is deleted as soon as its document is, and is gone itself all the same.
    const isLive = sql`(${row.deletedAt} is null or ${row.deletedReason} = 'document')`;
    const { tombstoned, held } = await retireHeld(tx, runId, (resource) =>
      stillAbsent(resource, isLive),
    );
    await tx.delete(deletes).where(and(eq(deletes.runId, runId), eq(deletes.state, 'quarantined')));
    return {
      tombstoned: tombstoned + readings.removed,
      spared: held - tombstoned + readings.spared,
    };
  });
  await settleHeld(db);
  return approved;
}

/** Tombstones held rows whose absence is explained now, and releases rows no longer absent. */
export async function settleHeld(db: Database): Promise<void> {
  const holding = await db
    .selectDistinct({ runId: deletes.runId })
    .from(deletes)
    .where(sql`${deletes.state} = 'quarantined'`);
  for (const { runId } of holding) {
    await withTransaction(db, async (tx) => {
      await retireHeld(tx, runId, needsNoDecision);
      const settled = tx
        .select({ resource: note.resource, recordId: note.recordId })
        .from(note)
        .where(and(eq(note.runId, runId), eq(note.state, 'quarantined'), sql`not (${waits})`));
      await tx
        .delete(deletes)
        .where(
          and(
            eq(deletes.runId, runId),
            sql`(${deletes.resource}, ${deletes.recordId}) in ${settled}`,
          ),
        );
    });
  }
}

/** Tombstones a run's quarantined rows that meet a condition; counts these and all of them. */
async function retireHeld(
  tx: Executor,
  runId: string,
  which: (resource: RecordResource) => SQL,
): Promise<{ tombstoned: number; held: number }> {
  // Notes are locked before rows, as in a run that judges a listing again.
  const held = await lockNotes(tx, runId, 'quarantined');
  let tombstoned = 0;
  for (const resource of recordResources) {
    const ofHeld = sql`${note.state} = 'quarantined' and ${which(resource)}`;
    const ids = await tombstone(tx, runId, resource, ofHeld);
    const areGone = and(eq(note.resource, resource), isAmong(note.recordId, ids));
    if (ids.length > 0) await decide(tx, runId, areGone, 'applied');
    tombstoned += ids.length;
  }
  return { tombstoned, held };
}

/** Keeps the rows that a run quarantined until the service lists them or somebody undoes this. */
export async function rejectDeletes(db: Executor, runId: string): Promise<{ kept: number }> {
  return { kept: await decide(db, runId, waits, 'rejected') };
}

/**
 * Restores and keeps the rows that a run tombstoned, unless something else tombstoned them since.
 * If the run tombstoned nothing, the rows that it keeps wait for a decision again.
 */
export async function undoDeletes(
  db: Database,
  runId: string,
): Promise<{ revived: number; waiting: number }> {
  return await withTransaction(db, async (tx) => {
    let revived = await reviveReadings(tx, runId);
    await lockNotes(tx, runId, 'applied');
    for (const resource of recordResources) revived += await revive(tx, runId, resource);
    const undone = await decide(tx, runId, sql`${note.state} = 'applied'`, 'undone');
    if (undone > 0) return { revived, waiting: 0 };
    await forgetOtherDecisions(tx, runId);
    return { revived, waiting: await decide(tx, runId, decidedToKeep, 'quarantined') };
  });
}

/** Forgets decisions of other runs on rows that this run keeps, which would still keep them. */
async function forgetOtherDecisions(tx: Executor, runId: string): Promise<void> {
  const decided: State[] = ['rejected', 'undone'];
  const kept = tx
    .select({ resource: note.resource, recordId: note.recordId })
    .from(note)
    .where(and(eq(note.runId, runId), inArray(note.state, decided)));
  await tx
    .delete(deletes)
    .where(
      and(
        sql`(${deletes.resource}, ${deletes.recordId}) in ${kept}`,
        ne(deletes.runId, runId),
        inArray(deletes.state, decided),
      ),
    );
}

/** Locks a run's notes of records in the order of their ids; returns how many there are. */
async function lockNotes(tx: Executor, runId: string, state: State): Promise<number> {
  const locked = await tx
    .select({ recordId: deletes.recordId })
    .from(deletes)
    .where(and(eq(deletes.runId, runId), eq(deletes.state, state), isNull(deletes.meterId)))
    .orderBy(deletes.resource, deletes.recordId)
    .for('update');
  return locked.length;
}

/** Moves notes of a run to another state; returns how many rows they name. */
async function decide(
  db: Executor,
  runId: string,
  which: SQL | undefined,
  to: State,
): Promise<number> {
  const decided = await db
    .update(note)
    .set({ state: to, decidedAt: to === 'quarantined' ? null : sql`clock_timestamp()` })
    .where(and(eq(note.runId, runId), which))
    .returning({ readings: note.readings });
  return decided.reduce((rows, { readings }) => rows + (readings ?? 1), 0);
}
