import { and, count, eq, isNull, type SQL, sql } from 'drizzle-orm';
import { type DeletesCap, overCap } from '../../contract/deletes-cap.ts';
import { canonicalUuid } from '../../contract/values.ts';
import { isAmong, oneRow, printedUuids, unnested } from '../connection/arrays.ts';
import {
  type Database,
  type Executor,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import { absenceOf, absenceOfNoted } from '../deletes/absence.ts';
import { decidedToKeep, note, tombstone } from '../deletes/tombstone.ts';
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
    const notes = others.map((one) => ({
      ...one,
      state: tooMany || one.isKept ? ('quarantined' as const) : ('applied' as const),
    }));
    await noteListed(tx, { runId, companyId, beganAt }, notes);
    const quarantined = held.length + notes.filter(({ state }) => state === 'quarantined').length;
    const which = sql`${note.state} = 'applied'
      and ${isListedOnlyBy('documents', companyId)}
      and ${row.deletedAt} is null
      and ${absenceOfNoted('documents')} <> 'shown'`;
    const tombstoned = await tombstone(tx, runId, 'documents', which);
    return { live, tombstoned: tombstoned.length, quarantined };
  });
}

interface Gone extends Record<string, unknown> {
  readonly id: string;
  readonly updated: string | null;
  /** Whether the row waits for a decision. */
  readonly isHeld: boolean;
  /** Whether somebody decided to keep an earlier state of it. */
  readonly isKept: boolean;
}

/** Locks the live rows of these documents. A changing listing may contain a document twice. */
async function lockGone(
  tx: Transaction,
  companyId: string,
  listed: readonly ListedDocument[],
  beganAt: string,
): Promise<Gone[]> {
  // Documents with other ids are in no table.
  const withUuid = listed.filter(({ id }) => canonicalUuid(id) !== undefined);
  const noted = (which: SQL): SQL => sql`exists (
          select from ${deletes} ${note}
          where ${note.resource} = 'documents'
            and ${note.recordId} = ${row.id}::text
            and ${which}
          offset 0
        )`;
  const sameState = sql`${note.updated} is not distinct from listed.updated`;
  const aboutThis = sql`${decidedToKeep} and (${note.reason} = 'absent' or ${sameState})`;
  const { rows } = await tx.execute<Gone>(sql`
    with listed as (
      select distinct on (id) id, metersync.read_time(updated) as updated
      from ${unnested('page', withUuid, [
        ['id', 'uuid', ({ id }) => id],
        ['updated', 'text', ({ updated }) => updated],
      ])}
      order by id, 2 desc nulls last
    )
    select
      ${row.id}::text as id,
      listed.updated,
      ${noted(sql`${note.state} = 'quarantined'`)} as "isHeld",
      ${noted(decidedToKeep)} as "isKept"
    from listed
      join ${documents} ${row} on ${row.id} = listed.id
    where ${isListedOnlyBy('documents', companyId)}
      and ${row.deletedAt} is null
      and coalesce(listed.updated >= ${row.updated}, true)
      and ${absenceOf('documents', sql`${beganAt}::timestamptz`)} <> 'shown'
      and not ${noted(aboutThis)}
    order by ${row.id}
    for update of ${row}`);
  return rows;
}

/**
 * Notes that held documents, also those that a backfill found absent, are now listed as deleted. A
 * note keeps its run, because an operator may be about to name the run in a command.
 */
async function noteSeenAgain(
  tx: Transaction,
  held: readonly Gone[],
  beganAt: string,
): Promise<void> {
  await tx.execute(sql`
    update ${deletes} d set
      absent_since = ${beganAt}::timestamptz,
      updated = gone.updated,
      reason = 'listed'
    from ${unnested('gone', held, [
      ['id', 'text', ({ id }) => id],
      ['updated', 'timestamptz', ({ updated }) => updated],
    ])}
    where d.resource = 'documents'
      and d.record_id = gone.id
      and d.state = 'quarantined'`);
}

/** Notes documents that are tombstoned now or quarantined. */
async function noteListed(
  tx: Transaction,
  { runId, companyId, beganAt }: Readonly<Record<'runId' | 'companyId' | 'beganAt', string>>,
  gone: readonly (Gone & { readonly state: 'applied' | 'quarantined' })[],
): Promise<void> {
  await tx.execute(sql`
    insert into ${deletes} (
      run_id, company_id, resource, record_id, state, reason, updated, absent_since
    )
    select
      ${runId}::uuid, ${companyId}::uuid, 'documents', id, state, 'listed', updated,
      ${beganAt}::timestamptz
    from ${unnested('gone', gone, [
      ['id', 'text', ({ id }) => id],
      ['state', 'text', ({ state }) => state],
      ['updated', 'timestamptz', ({ updated }) => updated],
    ])}
    on conflict (run_id, resource, record_id) do update set
      state = excluded.state,
      updated = excluded.updated,
      absent_since = excluded.absent_since`);
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
