import { and, eq, exists, isNotNull, isNull, lt, notExists, or, sql } from 'drizzle-orm';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { type DeletesCap, overCap } from '../deletes/absent.ts';
import { row, rowsOf } from '../deletes/tombstone.ts';
import { notShown, type SettledBy, settleRead } from '../hot/settle-read.ts';
import { isListedOnlyBy } from '../records/listers.ts';
import type { ListedResource } from '../resources.ts';
import { journal, listings } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';
import { tombstoneNeverRead } from './postpone.ts';
import { eventKind, pendingOf, queueOf } from './queue.ts';

/**
 * Settles the events that waited for the given records before the read began; see `settleRead`. The
 * service does not have the `notFound` records: after `notFoundAttemptsMax` attempts they are
 * tombstoned, unless there are more than the cap allows, and their events are `missing`. Returns how
 * many records had events that were settled, and how many have events that wait for another read.
 */
export async function settleRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  { companyId, shown, notFound = [], cap }: SettledBy & NotFound = {},
): Promise<{ applied: number; waiting: number }> {
  if (notFound.length > 0) {
    if (companyId !== undefined) await moveToNewest(db, kind, notFound, companyId);
    await tombstoneNotFound(db, kind, notFound, readAt, { companyId, cap });
  }
  const records = await settleRead(db, kind, recordIds, readAt, { companyId, shown });
  const givenUp = records.flatMap(({ record_id, missing }) => (missing > 0 ? [record_id] : []));
  if (givenUp.length > 0) await acceptOlder(db, kind, givenUp);
  await tombstoneNeverRead(db, kind, givenUp);
  return {
    applied: records.filter(({ settled }) => settled > 0).length,
    waiting: records.filter(({ waiting }) => waiting > 0).length,
  };
}

interface NotFound {
  readonly notFound?: readonly string[];
  /** How many records of the company may be tombstoned so within a day; without it, any number. */
  readonly cap?: DeletesCap | undefined;
}

/**
 * Returns up to `most` records that events of a company wait for which were recorded before its listings
 * were read that were last proved complete; and when the first of these reads began.
 */
export async function listedRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  resources: readonly ListedResource[],
  most: number,
): Promise<{ readAt: string; records: string[] }> {
  const { rows } = await db.execute<{ read_at: string; record_id: string }>(sql`
    select distinct read.began::text as read_at, e.record_id
    from (
        select min(proved_began) as began
        from ${listings}
        where company_id = ${companyId}::uuid
          and resource = any(${array(resources, 'text')})
        having count(*) = ${resources.length}
      ) read
      join ${journal} e on e.queue = ${queueOf(eventKind[kind], companyId)}
    where e.recorded_at <= read.began
    limit ${most}`);
  return { readAt: rows[0]?.read_at ?? '', records: rows.map(({ record_id }) => record_id) };
}

/**
 * Moves the pending events of documents to the queue of the documents' owner, because only its
 * listings contain their usage and meters. Returns the documents whose events moved.
 */
export async function moveToCompany(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<string[]> {
  const { rows } = await db.execute<{ record_id: string }>(sql`
    with moved as materialized (
      select e.id, d.company_id
      from ${pendingOf.records('documents', documentIds)}
        cross join lateral (
          select company_id
          from ${documents}
          where id = e.record_id::uuid
          offset 0
        ) d
      where e.queue = ${queueOf('document', companyId)}
        and d.company_id <> ${companyId}::uuid
    )
    update ${journal} e set
      queue = ${queueOf('document', sql`m.company_id`)}
    from moved m
    where e.id = any(array(select id from moved))
      and e.id = m.id
    returning e.record_id`);
  return [...new Set(rows.map(({ record_id }) => record_id))];
}

/**
 * Moves pending events of records out of a company's queue if the newest pending event about the
 * record names another company: the record moved, and the company rightly lacks it.
 */
async function moveToNewest(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  companyId: string,
): Promise<void> {
  await db.execute(sql`
    with pending as materialized (
      select e.id, e.queue, first_value(e.queue) over newest_first as newest
      from ${pendingOf.records(kind, recordIds)}
      window newest_first as (partition by e.record_id order by e.occurred_at desc nulls last, e.id)
    )
    update ${journal} e set
      queue = p.newest
    from pending p
    where e.id = any(array(
        select id from pending where queue = ${queueOf(eventKind[kind], companyId)} and newest <> queue
      ))
      and e.id = p.id`);
}

/**
 * Ends the hints of events that were given up, because the service never returned the state that
 * they named. The rows then show what was read, unless another event still waits: a record that an
 * event deleted and the service goes on showing is live again.
 */
async function acceptOlder(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
): Promise<void> {
  const table = kind === 'documents' ? documents : connections;
  const waits = db
    .select({})
    .from(sql`(select outcome from ${journal} where id = ${table.hintEventId} offset 0) event`)
    .where(sql`event.outcome = 'pending'`);
  await db
    .update(table)
    .set({ hintSettledAt: sql`clock_timestamp()`, unreadable: null })
    .where(
      and(
        isAmong(table.id, recordIds, 'uuid'),
        isNotNull(table.hint),
        or(
          and(eq(table.hintDeletes, false), isNull(table.deletedAt)),
          and(eq(table.hintDeletes, true), eq(table.deletedReason, 'event'), isNotNull(table.raw)),
        ),
        notExists(waits),
      ),
    );
}

/**
 * Tombstones records that the service has not had for long enough. Records that a later read found
 * are not changed. If more records that were read would be tombstoned than the cap allows, none is:
 * the next backfill finds them, and holds their deletions back for a person.
 */
async function tombstoneNotFound(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  { companyId, cap }: Pick<SettledBy, 'companyId'> & NotFound,
): Promise<void> {
  const table = kind === 'documents' ? documents : connections;
  const isTried = sql`(error_code is not distinct from ${notShown}
            and attempts >= ${recordPolicy.notFoundAttemptsMax})`;
  const ofCompany =
    companyId === undefined ? sql`true` : sql`queue = ${queueOf(eventKind[kind], companyId)}`;
  // A newer event has attempts of its own.
  const longUnseen = sql`exists (
          select
          from ${journal}
          where record_id = ${table.id}::text
            and kind = ${eventKind[kind]}
            and outcome = 'pending'
          having bool_or(${isTried} and ${ofCompany})
            and not bool_or(not ${isTried} and ${ofCompany} and recorded_at <= ${readAt}::timestamptz)
        )`;
  // The listing of a company says nothing about what another company lists.
  const lacking = (company: string) =>
    db
      .select({})
      .from(rowsOf(kind))
      .where(and(eq(row.id, table.id), or(isNull(row.companyId), isListedOnlyBy(kind, company))))
      .offset(literal(0));
  const isGone = and(
    isAmong(table.id, recordIds, 'uuid'),
    isNull(table.deletedAt),
    or(isNull(table.syncedAt), lt(table.syncedAt, readAt)),
    longUnseen,
    companyId === undefined ? undefined : exists(lacking(companyId)),
  );
  if (cap !== undefined && companyId !== undefined) {
    const gone = await db.$count(table, and(isGone, isNotNull(table.raw)));
    const ofCompany = eq(table.companyId, companyId);
    const today = sql`${table.deletedReason} = 'not_found'
      and ${table.deletedAt} > clock_timestamp() - interval '1 day'`;
    if (gone > 0) {
      const before = await db.$count(table, and(ofCompany, today));
      const live = await db.$count(table, and(ofCompany, isNull(table.deletedAt)));
      if (overCap(cap, before + gone, before + live)) return;
    }
  }
  await db
    .update(table)
    .set({ absentSince: sql`clock_timestamp()`, absentBy: 'not_found' })
    .where(isGone);
}
