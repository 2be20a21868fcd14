import { sql } from 'drizzle-orm';
import { canonicalId } from '../../contract/ids.ts';
import { isStale } from '../catch-up/stale.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { row } from '../deletes/tombstone.ts';
import { isAlsoListed } from '../records/owner.ts';
import type { RecordPage } from '../records/page.ts';
import { idOf, type RecordResource, resources, tableOf } from '../resources.ts';
import { rejectedRecords } from '../schema/metersync.ts';

/**
 * Returns the positions in a page, from 0, of the records that are unchanged since their rows were
 * written and that an upsert would not touch. Also deletes earlier refusals of these records. It
 * runs for each page. Measured: 0.06 ms and 15 blocks for five records; 0.54 ms and 379 blocks for
 * seventy.
 */
export async function unchangedPlaces(
  db: Executor,
  resource: RecordResource,
  { companyId, byId = false, readAt, confirms = false }: RecordPage,
  ids: readonly (string | null)[],
  digests: readonly string[],
): Promise<Set<number>> {
  const canonicalIds = ids.map((id) => id && canonicalId(id));
  const seen = new Set<string | null>();
  // If a page lists a record twice, the upsert chooses the state.
  const twice = new Set(canonicalIds.filter((id) => seen.size === seen.add(id).size));
  const asked = array(
    canonicalIds.map((id) => (twice.has(id) ? null : id)),
    'text',
  );
  // Records for which events wait count as read now, which only the upsert notes.
  const { eventKind } = resources[resource];
  const awaited =
    confirms && eventKind !== null
      ? sql`and not ${isStale(eventKind, sql`${row.id}::text`)}`
      : sql``;
  const listed = byId
    ? sql``
    : sql`and (
              ${row.companyId} = ${companyId}::uuid
              or ${isAlsoListed(resource, sql`${companyId}::uuid`)}
            )`;
  const { rows } = await hot(db, 'unchangedPlaces').execute<{
    place: number;
  }>(sql`
    with same as materialized (
      select (place - 1)::int as place, page.id
      from unnest(${asked}, ${array(digests, 'text')})
        with ordinality as page (id, digest, place)
        cross join lateral (
          select
          from ${tableOf(resource)} ${row}
          where ${row.id} = ${idOf(resource, sql`page.id`)}
            and ${row.digest} = decode(page.digest, 'hex')
            and ${row.deletedAt} is null
            and ${row.syncedAt} is not null
            ${eventKind === null ? sql`` : sql`and ${row.hint} is null`}
            ${awaited}
            ${listed}
          offset 0
        ) existing
    ), cleared as (
      delete from ${rejectedRecords}
      where resource = ${resource}
        and record_id = any(array(select id from same))
        and rejected_at < ${readAt}::timestamptz
    )
    select place from same`);
  return new Set(rows.map(({ place }) => place));
}
