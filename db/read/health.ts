import { and, isNotNull, isNull, sql } from 'drizzle-orm';
import { limits } from '../../contract/limits.ts';
import { recordPolicy, serverWaits } from '../../contract/retry-policy.ts';
import type { PendingEvents, WarehouseHealth, WatchHealth } from '../../health/measured.ts';
import {
  type Database,
  type Executor,
  setLocal,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import { keeps } from '../deletes/absence.ts';
import { readUndecided } from '../deletes/list-rows.ts';
import { note, rowsOfNote } from '../deletes/tombstone.ts';
import { readDifferingAudit } from '../operations.ts';
import { alerts, heartbeat, journal } from '../schema/metersync.ts';
import { rejectedRecords } from '../schema/reads.ts';
import { connections, documents } from '../schema/utility.ts';
import { isToSend } from '../watch/alarms.ts';
import { readRefused } from '../watch/refused.ts';
import { readDelays, readSilence } from './arrivals.ts';
import { countUpTo, secondsSince } from './bounds.ts';
import { countIssuesByCheck } from './issues.ts';
import { readLateWork, readParked, readPending, readWaiting } from './queue.ts';
import { isLoaded, readKindOfRuns } from './runs.ts';

/**
 * Reads the warehouse's health with index lookups. The cost grows with what is wrong, up to
 * `limits.countMax` rows of each kind. It does not grow with the journal, the runs or the readings.
 * @throws the error of Postgres when a statement takes longer than `serverWaits.healthWithinMs`
 */
export async function readHealth(
  db: Database,
  {
    silenceHours = 0,
    countMax = limits.countMax,
  }: { silenceHours?: number; countMax?: number } = {},
): Promise<WarehouseHealth> {
  return await withinTime(db, (tx) => measure(tx, silenceHours, countMax + 1));
}

/** Reads in a transaction with a time-out for each statement; 0 means no time-out. */
export async function withinTime<T>(
  db: Database,
  read: (tx: Transaction) => Promise<T>,
  ms: number = serverWaits.healthWithinMs,
): Promise<T> {
  return await withTransaction(
    db,
    async (tx) => {
      await setLocal(tx, { statement_timeout: String(ms) });
      return await read(tx);
    },
    { accessMode: 'read only' },
  );
}

/** Measures the warehouse. At most `most` rows of each kind are counted. */
export async function measure(
  db: Executor,
  silenceHours: number,
  most: number,
): Promise<WarehouseHealth> {
  const { resource, recordId } = rejectedRecords;
  const pending = await readPending(db, most);
  const waiting = await readWaiting(db, most);
  const undecided = await readUndecided(db, most);
  const undecidedDeletes = undecided?.byResource.reduce((sum, { rows }) => sum + rows, 0) ?? 0;
  const oldestDueSeconds = oldestOf(Object.values(pending));
  const isLate = oldestDueSeconds !== null && oldestDueSeconds > recordPolicy.lagSeconds;
  return {
    pending,
    oldestDueSeconds,
    late: isLate ? await readLateWork(db, waiting) : null,
    ...(await countGivenUp(db, Math.min(most, limits.givenUpMax + 1))),
    keptDeletes: await countKept(db, most),
    undecidedDeletes: Math.min(undecidedDeletes, most),
    undecided,
    rejectedRecords: await countUpTo(db, rejectedRecords, most, undefined, resource, recordId),
    waiting,
    parked: await readParked(db, waiting, most),
    runs: {
      full: await readKindOfRuns(db, 'full', undecidedDeletes),
      reconcile: await readKindOfRuns(db, 'reconcile', undecidedDeletes),
    },
    loaded: await isLoaded(db),
    silence: await readSilence(db, most),
    refused: await readRefused(db),
    audit: await readDifferingAudit(db),
    silenceHours,
    delays: await readDelays(db),
    intervalShortfall: await readShortfall(db, most),
    ...(await countIssuesByCheck(db, most)),
    watch: await readWatch(db),
  };
}

function oldestOf(pending: readonly PendingEvents[]): number | null {
  const ages = pending.flatMap(({ oldestDueSeconds }) => oldestDueSeconds ?? []);
  return ages.length === 0 ? null : Math.max(...ages);
}

/** Counts rows that somebody decided to keep; several runs may note the same row. */
async function countKept(db: Executor, most: number): Promise<number> {
  const noted = db
    .select({
      resource: note.resource,
      recordId: note.recordId,
      rows: sql<number>`${rowsOfNote}`.as('rows'),
    })
    .from(note)
    .where(keeps)
    .orderBy(note.companyId, note.resource)
    .limit(most)
    .as('noted');
  const rows = db.selectDistinct().from(noted).as('rows');
  const [kept] = await db
    .select({ rows: sql<number>`least(coalesce(sum(${rows.rows}), 0), ${most}::bigint)::int` })
    .from(rows);
  return kept?.rows ?? 0;
}

/** Counts the readings that at most `most` events reported and that reads did not find. */
async function readShortfall(db: Executor, most: number) {
  const { rows } = await db.execute<{ events: number; readings: number }>(sql`
    select count(*)::int as events, coalesce(sum(lacking), 0)::float8 as readings
    from (
      select lacking
      from ${journal}
      where lacking is not null
      order by record_id
      limit ${most}
    ) short`);
  return rows[0] ?? { events: 0, readings: 0 };
}

/**
 * Counts events that were given up, among the last `most` of each outcome: dead events whose record was
 * neither read nor deleted after the event was recorded, and events that became missing within the last day.
 */
export async function countGivenUp(db: Executor, most: number) {
  const { rows } = await db.execute<{ dead: number; missingLately: number }>(sql`
    select
      (
        select count(*)::int
        from (
          select kind, record_id, occurred_at, recorded_at
          from ${journal}
          where aside = 'dead'
          order by aside_at desc
          limit ${most}
        ) e
          left join lateral (
            select deleted_at, synced_at, raw_updated
            from ${documents}
            where e.kind = 'document' and id = metersync.uuid_of(e.record_id)
            union all
            select deleted_at, synced_at, raw_updated
            from ${connections}
            where e.kind = 'connection' and id = metersync.uuid_of(e.record_id)
          ) held on true
        where held.deleted_at > e.recorded_at is not true
          and (
            held.synced_at > e.recorded_at
            and coalesce(held.raw_updated >= e.occurred_at, true)
          ) is not true
      ) as dead,
      (
        select count(*)::int
        from (
          select aside_at
          from ${journal}
          where aside = 'missing'
          order by aside_at desc
          limit ${most}
        ) e
        where aside_at > now() - interval '1 day'
      ) as "missingLately"`);
  return rows[0] ?? { dead: 0, missingLately: 0 };
}

/** Reads when the watch last ran, its alarms, and whether an alarm could not be sent. */
export async function readWatch(db: Executor): Promise<WatchHealth> {
  const { name, key, openedAt, notifiedAt, closedAt, acknowledgedAt } = alerts;
  const [look] = await db
    .select({ lookedAt: heartbeat.at, lookedSecondsAgo: secondsSince(heartbeat.at) })
    .from(heartbeat);
  const open = await db
    .select({ name, key, openedAt: sql<string>`${openedAt}`, notifiedAt })
    .from(alerts)
    .where(and(isNull(closedAt), isNotNull(openedAt)));
  const acknowledged = await db
    .select({
      name,
      key,
      by: sql<string>`coalesce(${alerts.acknowledgedBy}, '')`,
      at: sql<string>`${acknowledgedAt}`,
      note: alerts.acknowledgedNote,
      counts: sql<Record<string, number>>`coalesce(${alerts.acknowledgedCounts}, '{}')`,
    })
    .from(alerts)
    .where(and(isNull(closedAt), isNotNull(acknowledgedAt)));
  const [unsent] = await db
    .select({
      seconds: secondsSince(sql`min(greatest(${openedAt}, ${closedAt}))`),
      error: sql<string>`max(${alerts.error})`,
    })
    .from(alerts)
    .where(and(isToSend(sql`clock_timestamp()`), isNotNull(alerts.error)))
    .having(sql`count(*) > 0`);
  return {
    lookedAt: look?.lookedAt ?? null,
    lookedSecondsAgo: look?.lookedSecondsAgo ?? null,
    open,
    acknowledged,
    unsent: unsent ?? null,
  };
}
