import { sql } from 'drizzle-orm';
import { keyOf } from '../catch-up/stale.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { events, settlements, staleRecords } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';
import { isDeletion } from './items.ts';

/**
 * Deletes the usage of documents that events deleted. Waiting and missing events that the deletions
 * cover are superseded. A deletion that waits has taken effect, and waits for its company alone.
 * Returns the documents whose events waited: their stale records are to be refreshed. Call it
 * before `noteStale` changes those.
 */
export async function noteDeleted(tx: Executor, deleted: readonly string[]): Promise<string[]> {
  const result = await hot(tx, 'noteDeleted').execute<{ record_id: string }>(sql`
    with gone as materialized (
      select d.id, d.id::text as record_id, d.updated, d.deleted_at
      from unnest(${array([...deleted].sort(), 'uuid')}) as named (id)
        cross join lateral (
          select id, updated, deleted_at
          from ${documents}
          where id = named.id and deleted_reason = 'event'
          offset 0
        ) d
    ), retired as (
      update ${usageData} u set
        deleted_at = g.deleted_at,
        deleted_reason = 'document'
      from gone g
      where u.id = any(array(
          select theirs.id
          from gone
            cross join lateral (
              select id
              from ${usageData}
              where document_id = gone.id and deleted_at is null
              offset 0
            ) theirs
          order by theirs.id
        ))
        and u.document_id = g.id
        and u.deleted_at is null
    ), waited as materialized (
      select g.record_id, s.owner, s.since, s.last_event_at, g.updated
      from gone g
        cross join lateral (
          select owner, since, last_event_at
          from ${staleRecords}
          where key = ${keyOf('document', sql`g.record_id`)}
          for update
        ) s
      where exists (
        select from ${events} e
        where e.record_id = g.record_id
          and e.recorded_at >= s.since
          and e.kind = 'document'
          and e.outcome = 'pending'
          and not ${isDeletion(sql`e.type`)}
          and e.occurred_at <= g.updated
        offset 0
      )
    ), superseded as (
      select record_id, owner, since, last_event_at as read_at, updated
      from waited
      union all
      select g.record_id, missing.owner, missing.since, missing.read_at, g.updated
      from gone g
        cross join lateral (
          select owner, since, read_at, outcome
          from ${settlements}
          where kind = 'document' and record_id = g.record_id
          offset 0
        ) missing
      where missing.outcome = 'missing'
    ), settled as (
      insert into ${settlements}
        (kind, record_id, owner, since, read_at, shown, outcome, updates_only)
      select 'document', record_id, owner, since, read_at, updated, 'superseded', true
      from superseded
    )
    select record_id
    from waited`);
  return result.rows.map((row) => row.record_id);
}
