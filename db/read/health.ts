import {
  and,
  count,
  countDistinct,
  desc,
  eq,
  gt,
  gte,
  isNotNull,
  isNull,
  max,
  min,
  ne,
  notExists,
  or,
  sql,
} from 'drizzle-orm';
import { probeEventType } from '../../contract/event.ts';
import { limits } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { recordPolicy, serverWaits } from '../../contract/retry-policy.ts';
import type {
  PendingEvents,
  Silence,
  WarehouseHealth,
  WatchHealth,
} from '../../health/measured.ts';
import { isWhole } from '../backfill/runs.ts';
import { literal } from '../connection/arrays.ts';
import {
  type Database,
  type Executor,
  setLocal,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import { keeps } from '../deletes/absence.ts';
import { note, rowsOfNote } from '../deletes/tombstone.ts';
import { readUndecided } from '../deletes/undecided.ts';
import { readDifferingAudit } from '../operations.ts';
import { alerts, heartbeat, journal } from '../schema/metersync.ts';
import { rejectedRecords, runs } from '../schema/reads.ts';
import { connections, documents } from '../schema/utility.ts';
import { isToSend } from '../watch/alarms.ts';
import { readRefused } from '../watch/refused.ts';
import { readDelays } from './arrivals.ts';
import { countUpTo, cut, mostCounted, secondsSince } from './bounds.ts';
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
    .select({ rows: cut(sql`coalesce(sum(${rows.rows}), 0)`, most) })
    .from(rows);
  return kept?.rows ?? 0;
}

/** Counts the readings that at most `most` events reported and that reads did not find. */
async function readShortfall(db: Executor, most: number) {
  const short = db
    .select({ lacking: journal.lacking })
    .from(journal)
    .where(isNotNull(journal.lacking))
    .orderBy(journal.recordId)
    .limit(most)
    .as('short');
  const [found] = await db
    .select({
      events: count(),
      readings: sql<number>`coalesce(sum(${short.lacking}), 0)::float8`,
    })
    .from(short);
  return found ?? { events: 0, readings: 0 };
}

type GivenUpOutcome = Extract<EventOutcome, 'dead' | 'missing'>;

/** The last events with an outcome. The outcome is not a parameter, so that a partial index can be used. */
const lastOf = (db: Executor, outcome: GivenUpOutcome, most: number) =>
  db
    .select()
    .from(journal)
    .where(sql`${journal.aside} = ${sql.raw(`'${outcome}'`)}`)
    .orderBy(desc(journal.asideAt))
    .limit(most)
    .as('e');

/** Counts events that were given up, among the last `most` of each outcome. */
export async function countGivenUp(db: Executor, most: number) {
  const dead = lastOf(db, 'dead', most);
  const missing = lastOf(db, 'missing', most);
  // If the record was read or deleted after the event was recorded, the warehouse has its change.
  const notWrittenSince = (kind: string, table: typeof documents | typeof connections) =>
    notExists(
      db
        .select({ one: sql`1` })
        .from(table)
        .where(
          and(
            eq(dead.kind, kind),
            eq(table.id, sql`metersync.uuid_of(${dead.recordId})`),
            or(
              gt(table.deletedAt, dead.recordedAt),
              and(
                gt(table.syncedAt, dead.recordedAt),
                sql`coalesce(${table.rawUpdated} >= ${dead.occurredAt}, true)`,
              ),
            ),
          ),
        )
        .offset(literal(0)),
    );
  const isLost = and(
    notWrittenSince('document', documents),
    notWrittenSince('connection', connections),
  );
  return {
    /** Dead events whose record was neither written nor deleted since. */
    dead: await db.$count(dead, isLost),
    /** Events that became missing within the last day. */
    missingLately: await db.$count(missing, sql`${missing.asideAt} > now() - interval '1 day'`),
  };
}

/** Measures whether events arrive. Probes are not events of the service. */
export async function readSilence(db: Executor, most: number = mostCounted): Promise<Silence> {
  const last = db
    .select({ at: max(journal.receivedAt).as('last_at') })
    .from(journal)
    .where(ne(journal.type, probeEventType))
    .as('last');
  const first = db
    .select({ at: min(runs.startedAt) })
    .from(runs)
    .where(isWhole(runs));
  const [quiet] = await db
    .select({
      at: last.at,
      seconds: sql<number | null>`${secondsSince(sql`coalesce(${last.at}, ${first})`)}`,
    })
    .from(last);
  const lastEventAt = quiet?.at ?? null;
  const seconds = quiet?.seconds ?? null;
  return {
    lastEventAt,
    quietSeconds: seconds === null ? null : Math.max(0, seconds),
    ...(await readMissed(db, lastEventAt, most)),
  };
}

/**
 * Counts changes that runs found since the last event, or in the last day if that is longer. A part
 * of a run at whose end an event waited that had been accepted a minute before the part began is
 * left out: the events of its changes may have waited, too.
 */
async function readMissed(db: Executor, lastEventAt: string | null, most: number) {
  const { rowsMissed, companyId, startedAt, finishedAt } = runs;
  const since = sql`least(now() - interval '1 day', ${lastEventAt ?? '-infinity'}::timestamptz)`;
  const lag = sql`make_interval(secs => ${recordPolicy.lagSeconds})`;
  const lastBefore = db
    .select({ recordedAt: journal.recordedAt })
    .from(journal)
    .where(sql`${journal.receivedAt} < ${startedAt} - ${lag}`)
    .orderBy(desc(journal.receivedAt))
    .limit(1);
  const missed = db
    .select({ rowsMissed, companyId, finishedAt })
    .from(runs)
    // The 0 is not a parameter, so that a partial index can be used.
    .where(
      and(
        isNotNull(companyId),
        sql`${rowsMissed} > 0`,
        gte(finishedAt, since),
        sql`${lastBefore} > ${finishedAt} is not true`,
      ),
    )
    .orderBy(desc(finishedAt))
    .limit(most)
    .as('missed');
  const [found] = await db
    .select({
      missedRows: sql<number>`coalesce(sum(${missed.rowsMissed}), 0)::int`,
      missedCompanies: countDistinct(missed.companyId),
      missedAt: max(missed.finishedAt),
    })
    .from(missed);
  return found ?? { missedRows: 0, missedCompanies: 0, missedAt: null };
}

/** Reads when the watch last ran, its alarms, and whether an alarm could not be sent. */
export async function readWatch(db: Executor): Promise<WatchHealth> {
  const look = await readLastLook(db);
  const open = await db
    .select({
      name: alerts.name,
      key: alerts.key,
      openedAt: sql<string>`${alerts.openedAt}`,
      notifiedAt: alerts.notifiedAt,
    })
    .from(alerts)
    .where(and(isNull(alerts.closedAt), isNotNull(alerts.openedAt)));
  const acknowledged = await db
    .select({
      name: alerts.name,
      key: alerts.key,
      by: sql<string>`coalesce(${alerts.acknowledgedBy}, '')`,
      at: sql<string>`${alerts.acknowledgedAt}`,
      note: alerts.acknowledgedNote,
      counts: sql<Record<string, number>>`coalesce(${alerts.acknowledgedCounts}, '{}')`,
    })
    .from(alerts)
    .where(and(isNull(alerts.closedAt), isNotNull(alerts.acknowledgedAt)));
  const [unsent] = await db
    .select({
      seconds: secondsSince(sql`min(greatest(${alerts.openedAt}, ${alerts.closedAt}))`),
      error: sql<string>`max(${alerts.error})`,
    })
    .from(alerts)
    .where(and(isToSend(sql`clock_timestamp()`), isNotNull(alerts.error)))
    .having(sql`count(*) > 0`);
  return { ...look, open, acknowledged, unsent: unsent ?? null };
}

/** Reads when the watch last ran. */
export async function readLastLook(db: Executor) {
  const { at } = heartbeat;
  const [look] = await db
    .select({ lookedAt: at, lookedSecondsAgo: sql<number | null>`${secondsSince(at)}` })
    .from(heartbeat);
  return look ?? { lookedAt: null, lookedSecondsAgo: null };
}
