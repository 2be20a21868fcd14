import { sql } from 'drizzle-orm';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';

/** The day, by UTC, from which on a reconcile reads what was updated: so many before today. */
export async function reconciledSince(db: Executor, days: number): Promise<string> {
  const result = await db.execute<{ since: string }>(
    sql`select ((clock_timestamp() at time zone 'UTC')::date - ${days}::int)::text as since`,
  );
  return result.rows[0]?.since ?? '';
}

/** A document as a listing showed it; `updated` is the service's own text. */
export interface ListedDocument {
  readonly id: string;
  readonly updated: string | null;
}

/** Documents of other ids are in no table. */
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Tombstones documents that the service lists as deleted, and the usage that came from them, except what something
 * else touched since `beganAt`, or what is newer than the state that the listing showed. The tombstone takes over
 * `updated`, so that no late event brings the document back; a later read that sees it does.
 */
export async function tombstoneListed(
  db: Executor,
  companyId: string,
  documents: readonly ListedDocument[],
  beganAt: string,
): Promise<number> {
  const known = documents.filter(({ id }) => uuid.test(id));
  const updated = known.map((document) => document.updated);
  const result = await db.execute<{ gone: number }>(sql`
    with listed as (
      select id, metersync.read_time(updated) as updated
      from unnest(${array(
        known.map(({ id }) => id),
        'uuid',
      )}, ${array(updated, 'text')}) as t (id, updated)
    ), gone as (
      update utility.documents d set deleted_at = clock_timestamp(), deleted_reason = 'listed',
        updated = greatest(d.updated, l.updated)
      from listed l
      where d.id = l.id and d.company_id = ${companyId}::uuid and d.deleted_at is null
        and (d.synced_at is null or d.synced_at < ${beganAt}::timestamptz)
        and (d.updated is null or l.updated is null or l.updated >= d.updated)
        and not exists (select from metersync.events e
          where e.record_id = l.id::text and e.recorded_at >= ${beganAt}::timestamptz)
      returning d.id, d.deleted_at
    ), usage as (
      update utility.usage_data u set deleted_at = g.deleted_at, deleted_reason = 'document'
      from gone g where u.document_id = g.id and u.deleted_at is null
    )
    select count(*)::int as gone from gone`);
  return result.rows[0]?.gone ?? 0;
}
