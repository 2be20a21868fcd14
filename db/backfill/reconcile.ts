import { and, count, eq, exists, inArray, isNull, not, or, type SQL, sql } from 'drizzle-orm';
import { type DeletesCap, overCap } from '../../contract/deletes-cap.ts';
import { canonicalUuid } from '../../contract/values.ts';
import {
  excluded,
  isAmong,
  literal,
  oneRow,
  printedUuids,
  unnested,
} from '../connection/arrays.ts';
import {
  type Database,
  type Executor,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import { absenceOf } from '../deletes/absence.ts';
import { note, tombstone } from '../deletes/tombstone.ts';
import { isBehind } from '../records/fence.ts';
import { isListedOnlyBy } from '../records/listers.ts';
import { row } from '../resources.ts';
import { deletes } from '../schema/reads.ts';
import { documents } from '../schema/utility.ts';

/** Returns the day, in UTC, from which a reconcile reads updated records: `days` before today. */
export async function reconciledSince(db: Executor, days: number): Promise<string> {
  const today = sql`(clock_timestamp() at time zone 'UTC')::date`;
  const [day] = await db
    .select({ since: sql<string>`(${today} - ${days}::int)::text` })
    .from(oneRow);
  return day?.since ?? '';
}

/** A document as a listing contained it; `updated` is the service's own text. */
export interface ListedDocument {
  readonly id: string;
  readonly updated: string | null;
}

/**
 * Tombstones documents that the service lists as deleted, and their usage; a later read that finds
 * them restores them. Rows written since `beganAt`, rows newer than the listing's state, rows that
 * somebody decided to keep while absent, and states about which somebody decided do not change. If
 * there are more documents than the cap allows, all are held back until an operator decides. Kept
 * documents that are listed as deleted with a newer state are held back, too. If a later walk over
 * the documents was proved, nothing changes. `live` is the number of live documents before.
 */
export async function retireListed(
  db: Database,
  runId: string,
  companyId: string,
  listed: readonly ListedDocument[],
  beganAt: string,
  cap: DeletesCap,
) {
  const walk = { companyId, resource: 'documents', began: beganAt } as const;
  return await withTransaction(db, async (tx) => {
    const isLive = and(eq(documents.companyId, companyId), isNull(documents.deletedAt));
    const [counted] = await tx.select({ live: count() }).from(documents).where(isLive);
    const live = counted?.live ?? 0;
    if (await isBehind(tx, walk, 'absences')) return { live, tombstoned: 0, quarantined: 0 };
    const gone = await lockGone(tx, companyId, listed, beganAt);
    if (gone.length === 0) return { live, tombstoned: 0, quarantined: 0 };
    const [held, others] = [
      gone.filter(({ isHeld }) => isHeld),
      gone.filter(({ isHeld }) => !isHeld),
    ];
    await noteSeenAgain(tx, held, beganAt);
    const tooMany = overCap(cap, gone.length, live);
    const notes = others.map(({ id, updated, isKept }) => ({
      runId,
      companyId,
      resource: 'documents',
      recordId: id,
      state: tooMany || isKept ? ('quarantined' as const) : ('applied' as const),
      reason: 'listed' as const,
      updated,
      absentSince: beganAt,
    }));
    await noteListed(tx, notes);
    const quarantined = held.length + notes.filter(({ state }) => state === 'quarantined').length;
    const which = sql`${note.state} = 'applied'
      and ${isListedOnlyBy('documents', companyId)}
      and ${row.deletedAt} is null
      and ${absenceOf('documents', sql`${note.absentSince}`)} <> 'shown'`;
    const tombstoned = await tombstone(tx, runId, 'documents', which);
    return { live, tombstoned: tombstoned.length, quarantined };
  });
}

/**
 * Locks the live rows of these documents. `isHeld`: the row waits for a decision. `isKept`:
 * somebody decided to keep an earlier state of it. A changing listing may contain a document twice.
 */
async function lockGone(
  tx: Transaction,
  companyId: string,
  listed: readonly ListedDocument[],
  beganAt: string,
) {
  // Documents with other ids are in no table.
  const withUuid = listed.filter(({ id }) => canonicalUuid(id) !== undefined);
  const incoming = unnested('page', withUuid, [
    ['id', 'uuid', ({ id }) => id],
    ['updated', 'text', ({ updated }) => updated],
  ]);
  const page = tx
    .selectDistinctOn([sql`id`], {
      id: sql`id`.as('id'),
      updated: sql`metersync.read_time(updated)`.as('updated'),
    })
    .from(incoming)
    .orderBy(sql`id`, sql`2 desc nulls last`)
    .as('listed');
  const noted = (which: SQL | undefined): SQL =>
    exists(
      tx
        .select({})
        .from(note)
        .where(and(eq(note.resource, 'documents'), eq(note.recordId, sql`${row.id}::text`), which))
        .offset(literal(0)),
    );
  const isDecided = inArray(note.state, ['rejected', 'undone']);
  const sameState = sql`${note.updated} is not distinct from listed.updated`;
  return await tx
    .select({
      id: sql<string>`${row.id}::text`,
      updated: sql<string | null>`listed.updated`,
      isHeld: sql<boolean>`${noted(eq(note.state, 'quarantined'))}`,
      isKept: sql<boolean>`${noted(isDecided)}`,
    })
    .from(row)
    .innerJoin(page, eq(sql`listed.id`, row.id))
    .where(
      and(
        isListedOnlyBy('documents', companyId),
        isNull(row.deletedAt),
        sql`coalesce(listed.updated >= ${row.updated}, true)`,
        sql`${absenceOf('documents', sql`${beganAt}::timestamptz`)} <> 'shown'`,
        not(noted(and(isDecided, or(eq(note.reason, 'absent'), sameState)))),
      ),
    )
    .orderBy(row.id)
    .for('update', { of: row });
}

/**
 * Notes that held documents, also those that a backfill found absent, are now listed as deleted. A
 * note keeps its run, because an operator may be about to name the run in a command.
 */
async function noteSeenAgain(
  tx: Transaction,
  held: Awaited<ReturnType<typeof lockGone>>,
  beganAt: string,
): Promise<void> {
  const gone = unnested('gone', held, [
    ['id', 'text', ({ id }) => id],
    ['updated', 'timestamptz', ({ updated }) => updated],
  ]);
  await tx
    .update(deletes)
    .set({ absentSince: beganAt, updated: sql`gone.updated`, reason: 'listed' })
    .from(gone)
    .where(
      and(
        eq(deletes.resource, 'documents'),
        eq(deletes.recordId, sql`gone.id`),
        eq(deletes.state, 'quarantined'),
      ),
    );
}

/** Notes documents that are tombstoned now or quarantined. */
async function noteListed(
  tx: Transaction,
  notes: readonly (typeof deletes.$inferInsert)[],
): Promise<void> {
  const { state, updated, absentSince } = deletes;
  // The protocol counts the parameters of a statement in 16 bits.
  for (let at = 0; at < notes.length; at += 1_000)
    await tx
      .insert(deletes)
      .values(notes.slice(at, at + 1_000))
      .onConflictDoUpdate({
        target: [deletes.runId, deletes.resource, deletes.recordId],
        set: excluded({ state, updated, absentSince }),
      });
}

/** Clears the quarantine of documents that a listing of live documents contains. */
export async function clearListed(
  db: Executor,
  companyId: string,
  liveIds: readonly string[],
): Promise<void> {
  await db.delete(deletes).where(
    and(
      // The state is a literal, as in the condition of the index on these notes.
      sql`${deletes.state} = 'quarantined'`,
      eq(deletes.reason, 'listed'),
      eq(deletes.resource, 'documents'),
      eq(deletes.companyId, companyId),
      isAmong(deletes.recordId, printedUuids(liveIds)),
    ),
  );
}
