import { and, isNull, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { Executor } from '../connect.ts';
import { idOf, type RecordResource, tableOf } from '../resources.ts';
import { deletes } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';

/** A row of any resource: the columns that statements name of it are in the tables of all. */
export const row = alias(documents, 'row');

/** What a run noted of a row. */
export const note = alias(deletes, 'note');

/** A row of usage data. */
export const usage = alias(usageData, 'usage');

/**
 * Tombstones the rows that a run noted so; returns how many. A document that the service lists as
 * deleted takes its usage with it, and takes over `updated`: no late event brings it back.
 */
export async function tombstone(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  which: SQL,
): Promise<number> {
  await lockRows(tx, runId, resource, which);
  const buried = await tombstoneRows(tx, runId, resource, which);
  if (resource === 'documents') await tombstoneUsage(tx, runId);
  return buried;
}

async function tombstoneRows(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  which: SQL,
): Promise<number> {
  const noted = notedBy(runId, resource);
  const takenOver =
    resource === 'documents'
      ? sql`,
      updated = greatest(${row.updated}, ${noted.told(sql`${note.updated}`)})`
      : sql``;
  const result = await tx.execute(sql`
    update ${tableOf(resource)} ${row}
    set deleted_at = clock_timestamp(),
      deleted_reason = ${noted.told(sql`${note.reason}`)}${takenOver}
    where ${noted.is(which)}`);
  return result.rowCount ?? 0;
}

async function tombstoneUsage(tx: Executor, runId: string): Promise<void> {
  await tx
    .update(usageData)
    .set({ deletedAt: deletedWith, deletedReason: 'document' })
    .where(and(isUsageOfListed(runId), isNull(usageData.deletedAt)));
}

const isApplied = sql`${note.state} = 'applied' and ${row.deletedReason} = ${note.reason}`;

/**
 * Locks the rows that a run noted so, in the order of their keys: writers lock in it too, documents
 * before their usage.
 */
async function lockRows(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  which: SQL,
): Promise<void> {
  await tx.execute(sql`
    select ${row.id}
    from ${tableOf(resource)} ${row}
    where ${notedBy(runId, resource).is(which)}
    order by ${row.id}
    for no key update`);
}

/** Revives rows that a run tombstoned and nothing buried since; documents with their usage. */
export async function revive(
  tx: Executor,
  runId: string,
  resource: RecordResource,
): Promise<number> {
  await lockRows(tx, runId, resource, isApplied);
  // The usage first: it is known by the tombstones of its documents.
  if (resource === 'documents') await reviveUsage(tx, runId);
  return await reviveRows(tx, runId, resource);
}

async function reviveUsage(tx: Executor, runId: string): Promise<void> {
  await tx
    .update(usageData)
    .set({ deletedAt: null, deletedReason: null })
    .where(sql`${isUsageOfListed(runId)}
      and ${usageData.deletedReason} = 'document'
      and ${usageData.deletedAt} = ${deletedWith}`);
}

async function reviveRows(tx: Executor, runId: string, resource: RecordResource): Promise<number> {
  const noted = notedBy(runId, resource);
  // What a tombstone took over of `updated` is given back, so that what is read next is not older.
  const givenBack =
    resource === 'documents'
      ? sql`,
      updated = case
        when ${row.updated} = ${noted.told(sql`${note.updated}`)}
          then coalesce(${row.rawUpdated}, ${row.updated})
        else ${row.updated}
      end`
      : sql``;
  const result = await tx.execute(sql`
    update ${tableOf(resource)} ${row}
    set deleted_at = null,
      deleted_reason = null${givenBack}
    where ${noted.is(isApplied)}`);
  return result.rowCount ?? 0;
}

/** The key of the row that a run noted. */
export const keyOfNoted = (resource: RecordResource): SQL => idOf(resource, sql`${note.recordId}`);

/**
 * Conditions on what a run noted of a row. The keys of all noted rows are picked first, then the
 * note of each is looked up: however many are noted, rows are found by their keys.
 */
const notedBy = (runId: string, resource: RecordResource) => {
  const own = sql`${note.runId} = ${runId}::uuid and ${note.resource} = ${resource}`;
  const ofRow = sql`
    from ${deletes} ${note}
    where ${own}
      and ${note.recordId} = ${row.id}::text`;
  const keys = sql`array(select ${keyOfNoted(resource)} from ${deletes} ${note} where ${own})`;
  return {
    /** Whether it is noted so. */
    is: (which: SQL): SQL => sql`${row.id} = any(${keys})
      and exists (select ${ofRow} and ${which} offset 0)`,
    /** A column of the note. */
    told: (column: SQL): SQL => sql`(select ${column} ${ofRow})`,
  };
};

/** When the document of a usage row was tombstoned. */
const deletedWith = sql`(
  select ${documents.deletedAt}
  from ${documents}
  where ${documents.id} = ${usageData.documentId}
)`;

/** Whether a usage row is of a document that a run tombstoned because the service lists it so. */
const isUsageOfListed = (runId: string): SQL => sql`${usageData.id} = any(array(
  select theirs.id
  from ${deletes} ${note}
    cross join lateral (
      select *
      from ${documents}
      where ${documents.id} = ${keyOfNoted('documents')}
      offset 0
    ) ${row}
    cross join lateral (
      select ${usage.id}
      from ${usageData} ${usage}
      where ${usage.documentId} = ${row.id}
      offset 0
    ) theirs
  where ${note.runId} = ${runId}::uuid
    and ${note.resource} = 'documents'
    and ${note.reason} = 'listed'
    and ${row.companyId} = ${note.companyId}
    and ${row.deletedReason} = 'listed'
))`;
