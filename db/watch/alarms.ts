import { randomUUID } from 'node:crypto';
import { and, asc, eq, gt, inArray, isNotNull, isNull, lt, or, type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { notifyPolicy } from '../../contract/retry-policy.ts';
import {
  type AlarmNotice,
  changesOf,
  findingOf,
  type LiveAlarm,
  noticeOf,
  type Raised,
  type Seen,
} from '../../health/alarms.ts';
import { type AlarmName, isAlarmName } from '../../health/findings.ts';
import type { Finding } from '../../health/verdict.ts';
import { type Database, type Executor, lock, withTransaction } from '../connection/connect.ts';
import { alerts, heartbeat } from '../schema/metersync.ts';

export interface Look {
  readonly seen: Seen;
  /** RFC 3339. */
  readonly at: string;
}

export interface Looked {
  readonly open: readonly AlarmName[];
  /** The openings and closings of this look. */
  readonly changes: readonly AlarmNotice[];
  /** The notices that have to be sent, in order. */
  readonly toSend: readonly AlarmNotice[];
}

/** Updates the heartbeat, opens and closes alarms, and reads which changes have to be sent. */
export async function noteLook(db: Database, look: Look): Promise<Looked> {
  return await withTransaction(db, async (tx) => {
    await lock(tx, alerts);
    const { at } = look;
    await tx
      .insert(heartbeat)
      .values({ at })
      .onConflictDoUpdate({ target: heartbeat.one, set: { at } });
    const before = await readLive(tx);
    const changes = await apply(tx, before, look);
    if (changes.length > 0) await deleteOld(tx, at);
    const open = (await readLive(tx)).filter(({ openedAt }) => openedAt !== null);
    return { open: open.map(({ name }) => name), changes, toSend: await readToSend(tx, look) };
  });
}

type Live = LiveAlarm & { readonly detail: string };

/** Reads the live alarms of the catalogue, without alarms that only another version knows. */
async function readLive(tx: Executor): Promise<Live[]> {
  const ms = (column: AnyPgColumn) =>
    sql<number | null>`(extract(epoch from ${column}) * 1000)::float8`;
  const rows = await tx
    .select({
      id: alerts.id,
      name: alerts.name,
      key: alerts.key,
      detail: alerts.detail,
      pendingSince: ms(alerts.pendingSince),
      openedAt: ms(alerts.openedAt),
    })
    .from(alerts)
    .where(isNull(alerts.closedAt));
  return (rows as Live[]).filter(({ name }) => isAlarmName(name));
}

/** Opens and closes alarms; returns a notice of each change. */
async function apply(
  tx: Executor,
  before: readonly Live[],
  { seen, at }: Look,
): Promise<AlarmNotice[]> {
  const now = Date.parse(at);
  const begun = changesOf(before, seen, now).begin;
  const fresh = await begin(tx, begun, at);
  const live = [...before, ...fresh];
  const { forget, open, close } = changesOf(live, seen, now);
  const ids = (alarms: readonly LiveAlarm[]): string[] => alarms.map(({ id }) => id);
  if (forget.length > 0) await tx.delete(alerts).where(inArray(alerts.id, ids(forget)));
  const set = async (alarms: readonly LiveAlarm[], values: Partial<typeof alerts.$inferInsert>) => {
    if (alarms.length > 0)
      await tx
        .update(alerts)
        .set(values)
        .where(inArray(alerts.id, ids(alarms)));
  };
  await set(open, { openedAt: at });
  await set(close, { closedAt: at });
  for (const alarm of live) {
    const detail = findingOf(seen, alarm)?.saw ?? alarm.detail;
    if (detail !== alarm.detail)
      await tx.update(alerts).set({ detail }).where(eq(alerts.id, alarm.id));
  }
  const all = (alarms: readonly Live[], until: string | null): AlarmNotice[] =>
    alarms.map((alarm) => {
      const raised = findingOf(seen, alarm);
      const since = new Date(alarm.openedAt ?? now).toISOString();
      return noticeOf({ ...alarm, detail: raised?.saw ?? alarm.detail }, { since, until }, raised);
    });
  return [...all(open, null), ...all(close, at)];
}

/** Reads what has to be sent about alarms of the catalogue, in the order of the changes. */
async function readToSend(tx: Executor, { seen, at }: Look): Promise<AlarmNotice[]> {
  const { id, name, key, detail, openedAt, closedAt } = alerts;
  const rows = await tx
    .select({ id, name, key, detail, openedAt, closedAt })
    .from(alerts)
    .where(isToSend(sql`${at}`))
    .orderBy(asc(sql`greatest(${openedAt}, ${closedAt})`), openedAt, name, key);
  return rows.flatMap(({ openedAt: since, closedAt: until, ...alarm }) => {
    if (!isAlarmName(alarm.name) || since === null) return [];
    const known = { ...alarm, name: alarm.name };
    const times = {
      since: new Date(since).toISOString(),
      until: until && new Date(until).toISOString(),
    };
    return [noticeOf(known, times, findingOf(seen, known))];
  });
}

async function begin(tx: Executor, begun: readonly Raised[], at: string): Promise<Live[]> {
  if (begun.length === 0) return [];
  const fresh = begun.map(({ alarm: name, key, saw: detail }) => ({
    id: randomUUID(),
    name,
    key,
    detail,
  }));
  await tx.insert(alerts).values(fresh.map((alarm) => ({ ...alarm, pendingSince: at })));
  const pendingSince = Date.parse(at);
  return fresh.map((alarm) => ({ ...alarm, pendingSince, openedAt: null }));
}

async function deleteOld(tx: Executor, at: string): Promise<void> {
  const days = sql`make_interval(days => ${notifyPolicy.keepDays}::int)`;
  await tx.delete(alerts).where(lt(alerts.closedAt, sql`${at}::timestamptz - ${days}`));
}

/** Selects alarms whose last change was not sent, except alarms that closed long ago. */
export const isToSend = (at: SQL): SQL | undefined =>
  and(
    isNotNull(alerts.openedAt),
    or(
      and(isNull(alerts.closedAt), isNull(alerts.notifiedAt)),
      and(
        gt(
          alerts.closedAt,
          sql`${at}::timestamptz - make_interval(secs => ${notifyPolicy.giveUpSeconds})`,
        ),
        or(isNull(alerts.notifiedAt), lt(alerts.notifiedAt, alerts.closedAt)),
      ),
    ),
  );

/**
 * Notes that a change of an alarm was sent, or why not. An opening may be noted when another look
 * has already closed the alarm; then the end still has to be sent.
 */
export async function noteSent(
  db: Executor,
  {
    id,
    change,
    at,
    error,
  }: Pick<AlarmNotice, 'id' | 'change'> & { at: string; error: string | null },
): Promise<void> {
  const { openedAt, closedAt } = alerts;
  const notifiedAt =
    change === 'opened'
      ? sql`case when ${closedAt} is null then ${at}::timestamptz else ${openedAt} end`
      : // Not before the alarm closed, even if clocks differ: otherwise the end would be sent again.
        sql`greatest(${at}::timestamptz, ${closedAt})`;
  // An error may quote an answer, and Postgres's text cannot hold NUL.
  const message = error?.replaceAll('\0', '\\0').toWellFormed() ?? null;
  await db
    .update(alerts)
    .set({ error: message, ...(error === null ? { notifiedAt } : {}) })
    .where(eq(alerts.id, id));
}

type Known = Pick<Finding, 'alarm' | 'key' | 'saw' | 'counts'>;

const live = ({ alarm, key }: Pick<Known, 'alarm' | 'key'>) =>
  and(eq(alerts.name, alarm ?? ''), eq(alerts.key, key), isNull(alerts.closedAt));

/** Notes that somebody knows of a finding, until it is over or its count rises. */
export async function acknowledgeFinding(
  db: Executor,
  finding: Known,
  { by, note }: { readonly by: string; readonly note: string | null },
): Promise<void> {
  const { alarm, key, saw: detail, counts } = finding;
  const known = {
    acknowledgedAt: sql`clock_timestamp()`,
    acknowledgedBy: by,
    acknowledgedNote: note,
    acknowledgedCounts: counts,
  };
  const updated = await db
    .update(alerts)
    .set(known)
    .where(live(finding))
    .returning({ id: alerts.id });
  if (updated.length > 0) return;
  // The watch has not seen it yet.
  await db
    .insert(alerts)
    .values({ name: alarm ?? '', key, detail, pendingSince: sql`clock_timestamp()`, ...known })
    .onConflictDoUpdate({
      target: [alerts.name, alerts.key],
      targetWhere: sql`closed_at is null`,
      set: known,
    });
}

/** Withdraws the acknowledgement of a finding. */
export async function unacknowledgeFinding(
  db: Executor,
  finding: Pick<Known, 'alarm' | 'key'>,
): Promise<void> {
  const none = {
    acknowledgedAt: null,
    acknowledgedBy: null,
    acknowledgedNote: null,
    acknowledgedCounts: null,
  };
  await db.update(alerts).set(none).where(live(finding));
}
