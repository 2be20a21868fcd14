import { type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import type { Executor } from '../connection/connect.ts';
import { idOf, type RecordResource, row, rowsOf, tableOf } from '../resources.ts';
import { companyChanges } from '../schema/metersync.ts';
import { deletes } from '../schema/reads.ts';
import { usageData } from '../schema/utility.ts';

/** What a run noted about a row. */
export const note = alias(deletes, 'note');

/** Whether somebody decided that the rows of a note stay. */
export const decidedToKeep = sql`${note.state} in ('rejected', 'undone')`;

/** How many rows a note is about: one record, or the readings of a range. */
export const rowsOfNote = sql<number>`coalesce(${note.readings}, 1)`;

export const usage = alias(usageData, 'usage');

const clock = sql`clock_timestamp()`;

/**
 * Tombstones the rows whose note meets a condition; returns their ids. A document listed as deleted
 * takes over its note's `updated`, so that no late event restores it.
 */
export async function tombstone(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  which: SQL,
): Promise<string[]> {
  await lockRows(tx, runId, resource, which);
  const { is, noted } = notedBy(runId, resource);
  const isDocument = resource === 'documents';
  const takenOver = { updated: sql`greatest(${row.updated}, ${noted(note.updated)})` };
  const tombstoned = await tx
    .update(rowsOf(resource))
    .set({ absentSince: clock, absentBy: noted(note.reason), ...(isDocument && takenOver) })
    .where(is(which))
    .returning({ id: row.id });
  return tombstoned.map(({ id }) => id);
}

const isApplied = sql`${note.state} = 'applied' and ${row.deletedReason} = ${note.reason}`;

/**
 * Locks the rows whose note meets a condition, by key and documents before usage, as writers do.
 * Notes that records of their companies change, because no trigger does so for connections.
 */
async function lockRows(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  which: SQL,
): Promise<void> {
  const { is, noted } = notedBy(runId, resource);
  await tx.execute(sql`
    with locked as (
      select ${noted(note.companyId)} as company_id
      from ${tableOf(resource)} ${row}
      where ${is(which)}
      order by ${row.id}
      for no key update
    )
    insert into ${companyChanges} (company_id)
    select distinct company_id
    from locked
    where company_id is not null`);
}

/**
 * Restores the rows that a run tombstoned and that nothing else has tombstoned since.
 */
export async function revive(
  tx: Executor,
  runId: string,
  resource: RecordResource,
): Promise<number> {
  await lockRows(tx, runId, resource, isApplied);
  const { is, noted } = notedBy(runId, resource);
  // Undoes that the tombstone took over `updated`, so that the next read does not count as older.
  const givenBack = sql`case
        when ${row.updated} = ${noted(note.updated)}
          then coalesce(${row.rawUpdated}, ${row.updated})
        else ${row.updated}
      end`;
  const { rowCount } = await tx
    .update(rowsOf(resource))
    .set({
      absentSince: null,
      absentBy: null,
      ...(resource === 'documents' && { updated: givenBack }),
    })
    .where(is(isApplied));
  return rowCount ?? 0;
}

/** The key of the row that a run noted. */
export const keyOfNoted = (resource: RecordResource): SQL => idOf(resource, sql`${note.recordId}`);

/**
 * Conditions on the note of a row. Postgres first collects the keys of all noted rows, and then
 * looks up the note of each row. Rows are therefore found by their keys, however many are noted.
 */
const notedBy = (runId: string, resource: RecordResource) => {
  const own = sql`${note.runId} = ${runId}::uuid and ${note.resource} = ${resource}`;
  const ofRow = sql`
    from ${deletes} ${note}
    where ${own}
      and ${note.recordId} = ${row.id}::text`;
  const keys = sql`array(select ${keyOfNoted(resource)} from ${deletes} ${note} where ${own})`;
  return {
    /** Whether the row's note meets a condition. */
    is: (which: SQL): SQL => sql`${row.id} = any(${keys})
      and exists (select ${ofRow} and ${which} offset 0)`,
    /** A column of the note. */
    noted: (column: PgColumn): SQL => sql`(select ${column} ${ofRow})`,
  };
};
