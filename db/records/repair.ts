import { and, gte, isNull, lt, notExists, or, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { array, isAmong, literal } from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { idOf, type RecordResource, resources, row, tableOf } from '../resources.ts';
import { companyChanges, journal } from '../schema/metersync.ts';
import { documents } from '../schema/utility.ts';

/**
 * Clears versions and tombstones of rows, so that the next write is accepted; usage is restored
 * with its document. Rows touched since `readAt` stay: they are newer than the page.
 */
export async function clearVersions(
  db: Database,
  resource: RecordResource,
  ids: readonly string[],
  readAt: string,
): Promise<void> {
  const { table } = resources[resource];
  await withTransaction(db, async (tx) => {
    const event = alias(journal, 'event');
    const came = tx
      .select({ id: event.id })
      .from(event)
      .where(and(sql`${event.recordId} = ${row.id}::text`, gte(event.recordedAt, readAt)))
      .offset(literal(0));
    const differing = sql`array(
      select ${idOf(resource, sql`id`)} from unnest(${array(ids, 'text')}) as differing (id)
    )`;
    const found = await tx
      .select({ id: sql<string>`${row.id}` })
      .from(sql`${tableOf(resource)} ${row}`)
      .where(
        and(
          sql`${row.id} = any(${differing})`,
          or(isNull(row.syncedAt), lt(row.syncedAt, readAt)),
          notExists(came),
        ),
      )
      .orderBy(row.id)
      .for('no key update');
    const cleared = found.map(({ id }) => id);
    // Without a hint, the row shows what the next read finds.
    const noHint = { hintEventId: null, hint: null, hintUpdated: null, hintDeletes: null };
    await tx
      .update(table)
      .set({
        ...(resources[resource].eventKind === null ? {} : noHint),
        // The trigger then computes all columns.
        raw: sql`${table.raw}`,
        syncedAt: null,
        absentSince: null,
        absentBy: null,
      })
      .where(isAmong(table.id, cleared, table.id.getSQLType() === 'uuid' ? 'uuid' : 'text'));
  });
}

/** Has the next page that shows these documents write them and their usage, even if they did not change. */
export async function forgetDigests(db: Executor, documentIds: readonly string[]): Promise<void> {
  await db
    .update(documents)
    .set({ digest: null })
    .where(isAmong(documents.id, documentIds, 'uuid'));
}

/** Notes that records of a company change, because no trigger does so for connections. */
export async function noteRepair(db: Executor, companyId: string): Promise<void> {
  await db.insert(companyChanges).values({ companyId });
}
