import { type SQL, sql } from 'drizzle-orm';
import { array, isAmong, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { documents, usageData } from '../schema/utility.ts';
import type { Cte } from './page.ts';

/** Locks documents in the order of their ids, so that nobody else writes their usage. */
export async function holdDocuments(tx: Executor, documentIds: readonly string[]): Promise<void> {
  await tx
    .select({ id: documents.id })
    .from(documents)
    .where(isAmong(documents.id, documentIds, 'uuid'))
    .orderBy(documents.id)
    .for('no key update');
}

/** Which usage is tombstoned. `documents` and `seen` are expressions for arrays of ids. */
interface Retiring {
  readonly documents: SQL;
  readonly seen: SQL;
  readonly readAt: string;
  /** Further columns to set, and a further condition on the rows. */
  readonly also?: SQL;
  readonly unless?: SQL;
}

/** Steps that tombstone usage rows that listings no longer contain; the last is `retired (id)`. */
export function retiringUsage({ documents: of, seen, readAt, also, unless }: Retiring): Cte {
  // Deleted as of the read: a row that a later read lists is live, whichever is written first.
  return sql`covered as (
      update ${documents} set usage_read_at = ${readAt}::timestamptz
      where id = any(${of})
        and (usage_read_at is null or usage_read_at <= ${readAt}::timestamptz)
      returning id
    ), retired as (
      update ${usageData} set
        ${also ?? sql``}
        deleted_at = ${readAt}::timestamptz,
        deleted_reason = 'absent'
      where document_id = any(array(select id from covered))
        and deleted_at is null
        and synced_at < ${readAt}::timestamptz
        and not (id::text = any(${seen}))
        ${unless ?? sql``}
      returning id
    )`;
}

/** A document, and when it had been tombstoned; null if it was live. */
interface Revived {
  readonly id: string;
  readonly tombstoned: string | null;
}

/** Restores the usage that was tombstoned together with documents that a read has restored. */
export async function reviveUsage(tx: Executor, documents: readonly Revived[]): Promise<void> {
  const revived = documents.filter(({ tombstoned }) => tombstoned !== null);
  if (revived.length === 0) return;
  const of = unnested('revived', revived, [
    ['id', 'uuid', ({ id }) => id],
    ['deleted_at', 'timestamptz', ({ tombstoned }) => tombstoned],
  ]);
  const { id, documentId, deletedReason, deletedAt } = usageData;
  await tx
    .update(usageData)
    .set({ deletedAt: null, deletedReason: null })
    .where(sql`${id} = any(array(
      select theirs.id
      from ${of}
        cross join lateral (
          select ${id}
          from ${usageData}
          where ${documentId} = revived.id
            and ${deletedReason} = 'document'
            and ${deletedAt} = revived.deleted_at
          offset 0
        ) theirs
      order by theirs.id
    ))`);
}

/** Moves the usage of documents to the owners of the documents. */
export async function moveUsage(tx: Executor, moved: readonly string[]): Promise<void> {
  if (moved.length === 0) return;
  await tx
    .update(usageData)
    .set({ companyId: ownerOfUsage })
    .where(sql`${usageData.id} = any(${usageElsewhere(moved)})`);
}

/** The owner of the document of a usage row. */
export const ownerOfUsage = sql`(
      select ${documents.companyId}
      from ${documents}
      where ${documents.id} = ${usageData.documentId}
    )`;

/** The ids of the usage rows of these documents whose owner is not the owner of the document. */
export const usageElsewhere = (documentIds: readonly string[]): SQL => sql`array(
      select theirs.id
      from unnest(${array([...documentIds].sort(), 'uuid')}) as asked (id)
        cross join lateral (
          select company_id
          from ${documents}
          where id = asked.id
          offset 0
        ) d
        cross join lateral (
          select id
          from ${usageData}
          where document_id = asked.id
            and company_id is distinct from d.company_id
          offset 0
        ) theirs
      order by theirs.id
    )`;
