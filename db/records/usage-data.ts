import { type SQL, sql } from 'drizzle-orm';
import { isAmong } from '../connection/arrays.ts';
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
  /** A further condition on the rows. */
  readonly unless?: SQL;
}

/** Steps that tombstone usage rows that listings no longer contain; the last is `retired (id)`. */
export function retiringUsage({ documents: of, seen, readAt, unless }: Retiring): Cte {
  // Deleted as of the read: a row that a later read lists is live, whichever is written first.
  return sql`covered as (
      update ${documents} set usage_read_at = ${readAt}::timestamptz
      where id = any(${of})
        and (usage_read_at is null or usage_read_at <= ${readAt}::timestamptz)
      returning id
    ), retired as (
      update ${usageData} set
        absent_since = ${readAt}::timestamptz,
        absent_by = 'absent'
      where document_id = any(array(select id from covered))
        and deleted_at is null
        and synced_at < ${readAt}::timestamptz
        and not (id::text = any(${seen}))
        ${unless ?? sql``}
      returning id
    )`;
}
