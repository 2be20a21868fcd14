import { type SQL, sql } from 'drizzle-orm';
import type { RecordEventKind } from '../../contract/event.ts';
import { canonicalId } from '../../contract/values.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { hasPending, queueOf } from '../queue/queue.ts';
import { idOf, type RecordResource, resources, row, tableOf } from '../resources.ts';
import { journal } from '../schema/metersync.ts';
import { deletes, rejectedRecords } from '../schema/reads.ts';
import { entryOf, isInDoubt, listerOf } from './listers.ts';
import type { RecordPage } from './page.ts';

/**
 * Returns the positions in a page, from 0, of the records that are unchanged since their rows, or
 * the entries about what their company lists, were written, and that an upsert would not touch:
 * nothing waits on their rows, neither an event nor a decision, and no row is tombstoned. A row that
 * changed since its entry was written is compared with the record again. Whether
 * anything waits on rows of the company is looked up once. Also deletes earlier refusals of these records. It runs for each page. Measured: 0.07 ms
 * and 21 blocks for five records; 0.56 ms and 385 blocks for seventy.
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
  const isOfOther = sql`${row.companyId} is distinct from ${companyId}::uuid`;
  const { eventKind } = resources[resource];
  const areEvents = eventKind === null ? sql`false` : anyPending(eventKind, companyId);
  const isAwaited =
    eventKind === null
      ? sql``
      : sql`
            and not (
              (${isOfOther} or (select events from waiting))
              and ${hasPending(eventKind, sql`${row.id}::text`)}
            )`;
  const lister = listerOf(sql`${row}`);
  const digest = sql`decode(page.digest, 'hex')`;
  const isSame = byId
    ? sql`${row.digest} = ${digest}`
    : sql`case ${lister}
              when ${companyId}::uuid then ${row.digest} = ${digest}
              else exists (
                select${entryOf(resource, sql`${companyId}::uuid`)}
                  and other.digest = ${digest}
                  and other.read_at >= ${row.syncedAt}
              )
            end`;
  const { rows } = await prepared(db, 'unchangedPlaces').execute<{
    place: number;
  }>(sql`
    with waiting as materialized (
      select
        ${areEvents} as events,
        ${isNoted(resource, companyId, sql`= 'quarantined'`)}
          or ${isNoted(resource, companyId, sql`in ('rejected', 'undone')`)} as decisions
    ), same as materialized (
      select (place - 1)::int as place, page.id
      from unnest(${asked}, ${array(digests, 'text')})
        with ordinality as page (id, digest, place)
        cross join lateral (
          select
          from ${tableOf(resource)} ${row}
          where ${row.id} = ${idOf(resource, sql`page.id`)}
            and ${isSame}
            and ${row.deletedAt} is null
            and ${row.syncedAt} is not null
            ${eventKind === null ? sql`` : sql`and ${row.hint} is null`}
            and not (
              (${isOfOther} or (select decisions from waiting))
              and ${isInDoubt(resource, sql`${row.id}`)}
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

/** Whether events wait for records of a company. */
const anyPending = (kind: RecordEventKind, companyId: string | null): SQL => sql`exists (
          select
          from ${journal}
          where queue = ${queueOf(kind, companyId ?? '')}
        )`;

/** Whether a note in a state is about a row of a company. Only its index by company serves. */
const isNoted = (
  resource: RecordResource,
  companyId: string | null,
  state: SQL,
): SQL => sql`exists (
          select
          from ${deletes}
          where ${deletes.state} ${state}
            and ${deletes.companyId} = ${companyId}::uuid
            and ${deletes.resource} || '' = ${resource}
        )`;
