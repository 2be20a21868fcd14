import { randomUUID } from 'node:crypto';
import { eq, inArray, isNull, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import {
  changesOf,
  type LiveAlarm,
  type RaisedAlarm,
  type Seen,
} from '../../contract/alert-changes.ts';
import { type AlertName, isAlertName } from '../../contract/alerts.ts';
import {
  type AlarmNotice,
  type AlertChange,
  type Notification,
  noticeOf,
  testOf,
} from '../../contract/notification.ts';
import { notifyPolicy } from '../../contract/retry-policy.ts';
import { array } from '../arrays.ts';
import type { Database, Executor } from '../connect.ts';
import { lock } from '../locks.ts';
import { alerts, heartbeat, notifications } from '../schema/metersync.ts';

/** An alarm that was opened while the warehouse was away. */
export interface Carried {
  readonly id: string;
  readonly name: AlertName;
  readonly detail: string;
  /** RFC 3339: when it began, and when its minutes were over. */
  readonly since: string;
  readonly openedAt: string;
  /** Whether a target was notified. */
  readonly notified: boolean;
}

export interface Look {
  readonly seen: Seen;
  /** RFC 3339. */
  readonly at: string;
  /** Names of the targets. */
  readonly targets: readonly string[];
  readonly carried?: Carried | undefined;
  /** Whether a test is sent, too. */
  readonly test?: boolean;
}

/** What a look left. */
export interface Looked {
  /** The open alarms. */
  readonly open: readonly AlertName[];
  /** The message that it made; null without a change. */
  readonly message: Notification | null;
}

/**
 * Notes a look: beats, opens and closes alarms, and makes the message of what changed for each
 * target. In one transaction, so that each change is in exactly one message.
 */
export async function noteLook(db: Database, look: Look): Promise<Looked> {
  return await db.transaction(async (tx) => {
    await lock(tx, 'alerts', 'inTurn');
    const { at, carried } = look;
    await tx
      .insert(heartbeat)
      .values({ at })
      .onConflictDoUpdate({ target: heartbeat.one, set: { at } });
    if (carried !== undefined) await adopt(tx, carried);
    const before = await readLive(tx);
    const notices = await apply(tx, before, look);
    if (look.test) notices.push(testOf(randomUUID(), at));
    const message = notices.length === 0 ? null : { id: randomUUID(), at, alerts: notices };
    if (message !== null) await queue(tx, message, look);
    const open = (await readLive(tx)).filter(({ openedAt }) => openedAt !== null);
    return { open: open.map(({ name }) => name), message };
  });
}

/** Notes as open what could not be noted while the warehouse was away. */
async function adopt(tx: Executor, carried: Carried): Promise<void> {
  const { id, name, detail, since, openedAt, notified } = carried;
  const notifiedAt = notified ? openedAt : null;
  await tx
    .insert(alerts)
    .values({ id, name, key: '', detail, pendingSince: since, openedAt, notifiedAt })
    .onConflictDoNothing();
}

type Live = LiveAlarm & { readonly detail: string };

/** Reads the live alarms of the catalogue: those that only another version knows are left to it. */
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
      remindedAt: ms(alerts.remindedAt),
    })
    .from(alerts)
    .where(isNull(alerts.closedAt));
  return (rows as Live[]).filter(({ name }) => isAlertName(name));
}

/** Opens, reminds of and closes alarms; returns a notice of each change. */
async function apply(
  tx: Executor,
  before: readonly Live[],
  { seen, at }: Look,
): Promise<AlarmNotice[]> {
  const now = Date.parse(at);
  const begun = changesOf(before, seen, now).begin;
  const fresh = await begin(tx, begun, at);
  const live = [...before, ...fresh];
  const { forget, open, remind, close } = changesOf(live, seen, now);
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
  await set(remind, { remindedAt: at });
  await set(close, { closedAt: at });
  const raisedAs = ({ name, key }: LiveAlarm): RaisedAlarm | undefined =>
    seen.raised.find((one) => one.name === name && one.key === key);
  for (const alarm of live) {
    const raised = raisedAs(alarm);
    if (raised !== undefined && raised.detail !== alarm.detail)
      await tx.update(alerts).set({ detail: raised.detail }).where(eq(alerts.id, alarm.id));
  }
  const detailOf = new Map(live.map(({ id, detail }) => [id, detail]));
  const all = (change: AlertChange, alarms: readonly LiveAlarm[]): AlarmNotice[] =>
    alarms.map((alarm) => {
      const raised = raisedAs(alarm);
      const detail = raised?.detail ?? detailOf.get(alarm.id) ?? '';
      const since = new Date(alarm.openedAt ?? now).toISOString();
      const until = change === 'resolved' ? at : null;
      return noticeOf(change, { ...alarm, detail }, { since, until }, raised);
    });
  return [...all('opened', open), ...all('reminder', remind), ...all('resolved', close)];
}

async function begin(tx: Executor, begun: readonly RaisedAlarm[], at: string): Promise<Live[]> {
  if (begun.length === 0) return [];
  const fresh = begun.map(({ name, key, detail }) => ({ id: randomUUID(), name, key, detail }));
  await tx.insert(alerts).values(fresh.map((alarm) => ({ ...alarm, pendingSince: at })));
  const pendingSince = Date.parse(at);
  return fresh.map((alarm) => ({ ...alarm, pendingSince, openedAt: null, remindedAt: null }));
}

/** Puts a message before each target, and forgets what is old. */
async function queue(tx: Executor, message: Notification, { at, targets }: Look): Promise<void> {
  const days = sql`make_interval(days => ${notifyPolicy.keepDays}::int)`;
  await tx.delete(notifications).where(sql`${notifications.madeAt} < ${at}::timestamptz - ${days}`);
  await tx
    .delete(alerts)
    .where(
      sql`${alerts.closedAt} is not null and ${alerts.closedAt} < ${at}::timestamptz - ${days}`,
    );
  if (targets.length === 0) return;
  const alertIds = message.alerts.map(({ id }) => id);
  await tx
    .insert(notifications)
    .values(
      targets.map((target) => ({ messageId: message.id, target, message, alertIds, madeAt: at })),
    );
}

/** Forgets what targets that are gone, or failed for too long, have not taken. */
export async function giveUp(
  db: Executor,
  { targets, at }: { targets: readonly string[]; at: string },
): Promise<{ target: string; messages: number }[]> {
  const { rows } = await db.execute<{ target: string; messages: number }>(sql`
    with given_up as (
      delete from ${notifications}
      where ${notifications.sentAt} is null
        and (
          ${notifications.madeAt} < ${at}::timestamptz
            - make_interval(secs => ${notifyPolicy.giveUpSeconds})
          or ${notifications.target} <> all(${array(targets, 'text')})
        )
      returning ${notifications.target}
    )
    select target, count(*)::int as messages
    from given_up
    group by target`);
  return rows;
}
