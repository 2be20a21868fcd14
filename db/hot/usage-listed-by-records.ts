import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { documents, usageData } from '../schema/utility.ts';

/**
 * Reads the ids of the usage rows of documents. Returns undefined unless the record of each
 * document lists its usage and the warehouse has exactly these rows. Raw because it runs twice for
 * each batch of documents that is caught up, and compares sets of ids in nested documents.
 */
export async function usageListedByRecords(
  db: Executor,
  documentIds: readonly string[],
): Promise<string[] | undefined> {
  const sorted = (id: SQL): SQL =>
    sql`array_agg(distinct ${id} collate "C" order by ${id} collate "C")`;
  const { rows } = await hot(db, 'usageListedByRecords').execute<{
    id: string | null;
    complete: boolean | null;
  }>(sql`
    with asked as (
      select
        d.id,
        jsonb_typeof(d.raw -> 'usageData') = 'array' and held.ids is not distinct from listed.ids
          as complete
      from ${documents} d
        cross join lateral (
          select ${sorted(sql`u.id::text`)} as ids
          from ${usageData} u
          where u.document_id = d.id
            and u.deleted_at is null
        ) held
        cross join lateral (
          select ${sorted(sql`metersync.canonical_id(row ->> 'id')`)} as ids
          from jsonb_array_elements(metersync.elements(d.raw -> 'usageData')) row
        ) listed
      where d.id = any(${array(documentIds, 'uuid')})
        and d.deleted_at is null
    )
    select theirs.id, asked.complete
    from asked
      left join lateral (
        select id
        from ${usageData}
        where document_id = asked.id
          and deleted_at is null
        offset 0
      ) theirs on true`);
  if (rows.some(({ complete }) => !complete)) return undefined;
  return rows.flatMap(({ id }) => id ?? []);
}
