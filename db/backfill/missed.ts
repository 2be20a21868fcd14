import {
  and,
  count,
  eq,
  gte,
  inArray,
  isNotNull,
  max,
  min,
  ne,
  notExists,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { CompanyResource } from '../../contract/endpoints.ts';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import type { Listing } from '../deletes/listing.ts';
import { journal, runs } from '../schema/metersync.ts';
import { connections, documents, intervals, meters, usageData } from '../schema/utility.ts';

const part = alias(runs, 'part');

/** A run that reads a part of a company. */
interface Read {
  readonly runId: string;
  readonly companyId: string;
  /** How long an event may be under way before its change counts as missed. */
  readonly graceSeconds: number;
}

/**
 * Counts rows that a run changed or found gone without the event that should report it. They
 * changed at the service after the last complete run of the listing began, which cannot have read
 * that. They changed at least `graceSeconds` before this run began, so the event is not just under
 * way. And the journal has no event of that state or a newer one.
 */
export async function countMissed(
  db: Executor,
  runId: string,
  listing: Listing,
  graceSeconds: number,
): Promise<number> {
  const [missed] = (await missedBy(db, runId, listing, graceSeconds)) ?? [];
  return missed?.rows ?? 0;
}

/**
 * Builds the query that counts missed rows; undefined for a listing that no events report. Meters are
 * counted with their usage, because none of their fields says when they changed.
 */
export function missedBy(
  db: Executor,
  runId: string,
  { resource, companyId }: Listing,
  graceSeconds: number,
) {
  if (companyId === null) return undefined;
  const read = { runId, companyId, graceSeconds };
  if (resource === 'usageData') return missedUsage(db, read);
  if (resource !== 'documents' && resource !== 'connections') return undefined;
  return missedRecords(db, read, resource);
}

/**
 * When a run began to read a company, and when the last other run that completed the part did, as tables of
 * one row.
 * @param since the part that the run began with; null for the first of the company
 */
function periodOf(
  db: Executor,
  { runId, companyId, graceSeconds }: Read,
  resource: CompanyResource,
  since: CompanyResource | null = resource,
) {
  const ofCompany = eq(part.companyId, companyId);
  const own = db
    .select({ at: min(part.startedAt).as('began_at') })
    .from(part)
    .where(
      and(eq(part.runId, runId), ofCompany, since === null ? undefined : eq(part.resource, since)),
    )
    .as('own');
  const before = db
    .select({ at: max(part.startedAt).as('before_at') })
    .from(part)
    .where(
      and(
        ne(part.runId, runId),
        ofCompany,
        eq(part.resource, resource),
        eq(part.state, 'complete'),
      ),
    )
    .as('before');
  const grace = sql`make_interval(secs => ${graceSeconds})`;
  /** Whether the run wrote a row that changed at the service between the two. */
  const changed = (syncedAt: SQLWrapper, updated: SQLWrapper) =>
    and(
      sql`${syncedAt} >= ${own.at}`,
      sql`${updated} >= ${before.at}`,
      sql`${updated} < ${own.at} - ${grace}`,
    );
  return { own, before, changed };
}

/** Whether the journal has no such event. */
const withoutEvent = (db: Executor, ...conditions: SQL[]): SQL =>
  notExists(
    db
      .select({})
      .from(journal)
      .where(and(...conditions))
      .offset(literal(0)),
  );

function missedRecords(db: Executor, read: Read, resource: 'documents' | 'connections') {
  const { own, before, changed } = periodOf(db, read, resource);
  const row = resource === 'documents' ? documents : connections;
  const isUnknown = withoutEvent(
    db,
    eq(journal.recordId, sql`${row.id}::text`),
    gte(journal.occurredAt, row.rawUpdated),
  );
  const isChanged = and(changed(row.syncedAt, row.rawUpdated), isUnknown);
  const isGone = and(
    inArray(row.deletedReason, ['absent', 'listed']),
    sql`${row.deletedAt} >= ${own.at}`,
  );
  return db
    .select({ rows: count() })
    .from(sql`${row}`)
    .crossJoin(own)
    .crossJoin(before)
    .where(
      and(
        eq(row.companyId, read.companyId),
        isNotNull(before.at),
        sql`case when ${row.deletedAt} is null then ${isChanged} else ${isGone} end`,
      ),
    );
}

/**
 * Counts missed usage, read by any part of the run: events of its document report it. Also counts
 * meters that the usage names and the run changed: the same events report new meters, and meters
 * that usage moved to.
 */
function missedUsage(db: Executor, read: Read) {
  const { own, before, changed } = periodOf(db, read, 'usageData', null);
  const { documentId, meterId, syncedAt, updated, deletedAt, deletedReason } = usageData;
  const noEventSince = (moment: SQLWrapper): SQL =>
    withoutEvent(
      db,
      eq(journal.recordId, sql`${documentId}::text`),
      sql`${journal.recordedAt} >= ${moment}`,
    );
  const meter = db
    .select({ id: meters.id })
    .from(meters)
    .where(and(eq(meters.id, meterId), sql`${meters.syncedAt} >= ${own.at}`))
    .offset(literal(0))
    .as('meter');
  const isChanged = and(changed(syncedAt, updated), noEventSince(updated));
  const isGone = and(
    eq(deletedReason, 'absent'),
    sql`${deletedAt} >= ${own.at}`,
    noEventSince(before.at),
  );
  return db
    .select({ rows: sql<number>`count(*) + count(distinct ${meter.id})`.mapWith(Number) })
    .from(usageData)
    .crossJoin(own)
    .crossJoin(before)
    .leftJoinLateral(meter, sql`true`)
    .where(
      and(
        eq(usageData.companyId, read.companyId),
        isNotNull(documentId),
        isNotNull(before.at),
        sql`case when ${deletedAt} is null then ${isChanged} else ${isGone} end`,
      ),
    );
}

/** Counts missed readings of a meter, among those with `updated`. */
export async function countMissedReadings(
  db: Executor,
  runId: string,
  { companyId, meterId }: { readonly companyId: string; readonly meterId: string },
  graceSeconds: number,
): Promise<number> {
  const read = { runId, companyId, graceSeconds };
  const { own, before, changed } = periodOf(db, read, 'intervals');
  const isUnknown = withoutEvent(
    db,
    eq(journal.recordId, intervals.meterId),
    gte(journal.recordedAt, intervals.updated),
    sql`${intervals.startAt} between ${journal.rangeStart} and ${journal.rangeEnd}`,
  );
  const [missed] = await db
    .select({ rows: count() })
    .from(intervals)
    .crossJoin(own)
    .crossJoin(before)
    .where(
      and(
        eq(intervals.meterId, meterId),
        isNotNull(before.at),
        changed(intervals.syncedAt, intervals.updated),
        isUnknown,
      ),
    );
  return missed?.rows ?? 0;
}
