import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { type RecordResource, resources, tableOf } from '../resources.ts';
import { rejectedRecords } from '../schema/metersync.ts';
import type { RecordPage } from './page.ts';

/**
 * Which version of resources.ts wrote a row. It is counted up with each change of what that makes of a record, so that every
 * record is written anew.
 */
const decoding = 1;

/** Whether the rows of a resource keep a digest of their record: those of which there are many. */
export const keepsDigests = (resource: RecordResource): boolean =>
  resources[resource].table.digest !== undefined;

/**
 * Digests of the records of a page, in hex: of their text, and of all else that their rows are made of. None where the
 * company is not told, which then comes from somewhere else.
 */
export function digestsOf(
  { companyId, apiVersion }: RecordPage,
  texts: readonly string[],
): string[] | undefined {
  if (companyId === null) return undefined;
  const context = JSON.stringify([decoding, companyId, apiVersion]);
  return texts.map((text) => createHash('sha256').update(context).update(text).digest('hex'));
}

/**
 * The places of a page, from 0 on, whose records are as they were when their rows were written: an upsert would
 * leave those rows as they are. What was refused of such a record before is forgotten.
 */
export async function unchangedPlaces(
  db: Executor,
  resource: RecordResource,
  { readAt }: Pick<RecordPage, 'readAt'>,
  ids: readonly (string | null)[],
  digests: readonly string[],
): Promise<Set<number>> {
  const seen = new Set<string | null>();
  // Of a record that a page shows twice the upsert chooses the state.
  const twice = new Set(ids.filter((id) => seen.size === seen.add(id).size));
  const asked = array(
    ids.map((id) => (twice.has(id) ? null : id)),
    'text',
  );
  const result = await db.execute<{ place: number }>(sql`
    with same as materialized (
      select (place - 1)::int as place, lower(page.id) as id
      from unnest(${asked}, ${array(digests, 'text')})
        with ordinality as page (id, digest, place)
      cross join lateral (
        select from ${tableOf(resource)} row
        where row.id = metersync.uuid_of(page.id)
          and row.digest = decode(page.digest, 'hex')
          and row.deleted_at is null
          and row.synced_at is not null
        offset 0
      ) known
    ), mended as (
      delete from ${rejectedRecords}
      where resource = ${resource}
        and record_id = any(array(select id from same))
        and rejected_at < ${readAt}::timestamptz
    )
    select place from same`);
  return new Set(result.rows.map(({ place }) => place));
}
