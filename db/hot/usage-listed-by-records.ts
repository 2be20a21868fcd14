import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { documents, usageData } from '../schema/utility.ts';

/**
 * Reads the ids of the usage rows that the records of documents list, and whether the warehouse has exactly these
 * rows. Returns undefined unless each record lists its usage. It runs twice for each batch of documents whose usage
 * is searched in a listing, and compares sets of ids in nested documents.
 */
export async function usageListedByRecords(
  db: Executor,
  documentIds: readonly string[],
): Promise<{ readonly ids: readonly string[]; readonly held: boolean } | undefined> {
  const sorted = (id: SQL): SQL =>
    sql`array_agg(distinct ${id} collate "C" order by ${id} collate "C")`;
  const { rows } = await hot(db, 'usageListedByRecords').execute<{
    ids: readonly string[] | null;
    lists: boolean | null;
    held: boolean;
  }>(sql`
    select
      listed.ids,
      jsonb_typeof(d.raw -> 'usageData') = 'array' as lists,
      held.ids is not distinct from listed.ids as held
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
      and d.deleted_at is null`);
  if (rows.some(({ lists }) => lists !== true)) return undefined;
  return {
    ids: rows.flatMap(({ ids }) => ids ?? []),
    held: rows.every(({ held }) => held),
  };
}
