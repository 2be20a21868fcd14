import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { canonicalId } from '../../contract/ids.ts';
import { isStale } from '../catch-up/stale.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { row } from '../deletes/tombstone.ts';
import { idOf, type RecordResource, resources, tableOf } from '../resources.ts';
import { rejectedRecords } from '../schema/metersync.ts';
import { isAlsoListed } from './owner.ts';
import type { RecordPage } from './page.ts';

/**
 * The version of resources.ts that wrote a row. Increase it when a record decodes to other values,
 * so that every record is written again.
 */
const decoding = 3;

/** Whether the rows of a resource have a digest of their record, as the rows of large tables do. */
export const keepsDigests = (resource: RecordResource): boolean =>
  resources[resource].table.digest !== undefined;

/**
 * Returns digests of a page's records in hex: of their text and of everything else that decides their rows.
 * The company that lists them is left out, because several may list them. Undefined if no company lists them.
 */
export function digestsOf(
  { companyId, apiVersion }: RecordPage,
  texts: readonly string[],
): string[] | undefined {
  if (companyId === null) return undefined;
  const context = JSON.stringify([decoding, apiVersion]);
  return texts.map((text) => createHash('sha256').update(context).update(text).digest('hex'));
}

/**
 * Returns the positions in a page, from 0, of the records that are unchanged since their rows were written,
 * and which an upsert would not touch. Also deletes earlier refusals of these records.
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
  // Records that events wait for count as read now, and the upsert notes so.
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
  const result = await hot(db, 'unchangedPlaces').execute<{ place: number }>(sql`
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
            ${awaited}
            ${listed}
          offset 0
        ) existing
    ), mended as (
      delete from ${rejectedRecords}
      where resource = ${resource}
        and record_id = any(array(select id from same))
        and rejected_at < ${readAt}::timestamptz
    )
    select place from same`);
  return new Set(result.rows.map(({ place }) => place));
}
