import { count, isNotNull, sql } from 'drizzle-orm';
import { limits } from '../../contract/limits.ts';
import { recordPolicy, serverWaits } from '../../contract/retry-policy.ts';
import type { PendingEvents, WarehouseHealth } from '../../health/measured.ts';
import {
  type Database,
  type Executor,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import { setLocal } from '../connection/set-local.ts';
import { keeps } from '../deletes/explained.ts';
import { note, rowsOfNote } from '../deletes/tombstone.ts';
import { readUndecided } from '../deletes/undecided.ts';
import { readDifferingAudit } from '../operations.ts';
import { journal, rejectedRecords } from '../schema/metersync.ts';
import { readRefused } from '../watch/refused.ts';
import { readDelays } from './arrivals.ts';
import { countUpTo, cut } from './counted.ts';
import { countGivenUp } from './given-up.ts';
import { countIssuesByCheck } from './issues.ts';
import { isLoaded, readKindOfRuns } from './kinds-of-runs.ts';
import { readParked } from './parked.ts';
import { readPending } from './pending.ts';
import { readSilence } from './silence.ts';
import { readLateWork, readWaiting } from './waiting.ts';
import { readWatch } from './watch.ts';

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
