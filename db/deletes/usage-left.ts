import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Database, Executor } from '../connect.ts';
import { holdDocuments } from '../records/usage-data.ts';
import { documents, usageData } from '../schema/utility.ts';
import { deletedWith, row, usage } from './tombstone.ts';

/** A usage row that lives though its document is tombstoned. */
export interface UsageLeft extends Record<string, unknown> {
  readonly id: string;
  readonly documentId: string;
}

/** Reads usage of a company that outlived its documents. */
export async function usageLeft(db: Executor, companyId: string): Promise<UsageLeft[]> {
  const { rows } = await db.execute<UsageLeft>(sql`
    select
      theirs.id::text as id,
      ${row.id}::text as "documentId"
    from ${documents} ${row}
      cross join lateral (
        select ${usage.id}
        from ${usageData} ${usage}
        where ${usage.documentId} = ${row.id}
          and ${usage.deletedAt} is null
        offset 0
      ) theirs
    where ${row.companyId} = ${companyId}::uuid
      and ${row.deletedAt} is not null
    order by id`);
  return rows;
}

/** Tombstones usage with its documents, unless these were revived meanwhile. */
export async function retireUsageLeft(db: Database, left: readonly UsageLeft[]): Promise<void> {
  const documentIds = left.map(({ documentId }) => documentId);
  const ids = left.map(({ id }) => id);
  await db.transaction(async (tx) => {
    await holdDocuments(tx, documentIds);
    await tx
      .update(usageData)
      .set({ deletedAt: deletedWith, deletedReason: 'document' })
      .where(sql`${usageData.id} = any(${array(ids, 'uuid')})
        and ${usageData.documentId} = any(${array(documentIds, 'uuid')})
        and ${usageData.deletedAt} is null
        and ${deletedWith} is not null`);
  });
}
