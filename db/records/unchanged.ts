import { type SQL, sql } from 'drizzle-orm';
import { canonicalId } from '../../contract/values.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { hasPending, queueOf } from '../queue/queue.ts';
import { idOf, type RecordResource, resources, row, tableOf } from '../resources.ts';
import { journal } from '../schema/metersync.ts';
import { alsoListed, deletes, rejectedRecords } from '../schema/reads.ts';
import { isInDoubt, listerOf } from './listers.ts';
import type { RecordPage } from './page.ts';

/**
 * Returns the positions in a page, from 0, of the records that are unchanged since their rows, or
 * the entries about what their company lists, were written, and that an upsert would not touch:
 * nothing waits on their rows, neither an event nor a decision, and no row is tombstoned. A row that
 * changed since its entry was written is compared with the record again. Also deletes earlier refusals
 * of these records.
 */
export async function unchangedPlaces(
  db: Executor,
  resource: RecordResource,
  { companyId, byId = false, readAt }: RecordPage,
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
  const { eventKind } = resources[resource];
  const digest = sql`decode(page.digest, 'hex')`;
  const isSame = byId
    ? sql`${row.digest} = ${digest}`
    : sql`case
              when ${listerOf(sql`${row}`)} = ${companyId}::uuid then ${row.digest} = ${digest}
              else exists (
                select from ${alsoListed} entry
                where entry.resource = ${resource}
                  and entry.record_id = page.id
                  and entry.company_id = ${companyId}::uuid
                  and entry.digest = ${digest}
                  and entry.read_at >= ${row.syncedAt}
              )
            end`;
  // Whether anything waits on rows of the company is looked up once.
  const isOfOther = sql`${row.companyId} is distinct from ${companyId}::uuid`;
  const areEvents: SQL =
    eventKind === null
      ? sql`false`
      : sql`exists (select from ${journal} where queue = ${queueOf(eventKind, companyId ?? '')})`;
  const isAwaited: SQL =
    eventKind === null
      ? sql``
      : sql`
            and ${row.hint} is null
            and not (
              (${isOfOther} or (select events from waiting))
              and ${hasPending(eventKind, sql`${row.id}::text`)}
            )`;
  const { rows } = await prepared(db, 'unchangedPlaces').execute<{ place: number }>(sql`
    with waiting as materialized (
      select
        ${areEvents} as events,
        -- Only the indexes by company serve an expression, and only for states as they name them.
        exists (
          select from ${deletes}
          where state = 'quarantined'
            and company_id = ${companyId}::uuid
            and resource || '' = ${resource}
        ) or exists (
          select from ${deletes}
          where state not in ('quarantined', 'applied')
            and company_id = ${companyId}::uuid
            and resource || '' = ${resource}
        ) as decisions
    ), same as materialized (
      select (place - 1)::int as place, page.id
      from unnest(${asked}, ${array(digests, 'text')}) with ordinality as page (id, digest, place)
        cross join lateral (
          select from ${tableOf(resource)} ${row}
          where ${row.id} = ${idOf(resource, sql`page.id`)}
            and ${isSame}
            and ${row.deletedAt} is null
            and ${row.syncedAt} is not null
            and not (
              (${isOfOther} or (select decisions from waiting))
              and ${isInDoubt(resource, row.id)}
            )${isAwaited}
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
