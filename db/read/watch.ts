import { and, desc, eq, isNotNull, isNull, sql } from 'drizzle-orm';
import type { WatchHealth } from '../../contract/verdict.ts';
import type { Executor } from '../connect.ts';
import { alerts, heartbeat, notifications } from '../schema/metersync.ts';

/** Reads when the watch last ran, the open alarms, and what targets have not taken. */
export async function readWatch(db: Executor): Promise<WatchHealth> {
  const look = await readLastLook(db);
  const open = await db
    .select({ name: alerts.name, key: alerts.key })
    .from(alerts)
    .where(and(isNull(alerts.closedAt), isNotNull(alerts.openedAt)));
  const undelivered = await db
    .select({
      target: notifications.target,
      seconds: sql<number>`extract(epoch from clock_timestamp() - min(${notifications.madeAt}))::float8`,
      error: sql<string | null>`max(${notifications.error})`,
    })
    .from(notifications)
    .where(isNull(notifications.sentAt))
    .groupBy(notifications.target);
  return { ...look, open, undelivered };
}

/** Reads when the watch last ran. */
export async function readLastLook(
  db: Executor,
): Promise<Pick<WatchHealth, 'lookedAt' | 'lookedSecondsAgo'>> {
  const [look] = await db
    .select({
      lookedAt: heartbeat.at,
      lookedSecondsAgo: sql<number>`extract(epoch from clock_timestamp() - ${heartbeat.at})::float8`,
    })
    .from(heartbeat);
  return look ?? { lookedAt: null, lookedSecondsAgo: null };
}

/** An alarm for people: null in `openedAt` while it waits for its minutes. */
export interface ListedAlert {
  readonly id: string;
  readonly name: string;
  readonly key: string;
  readonly detail: string;
  readonly pendingSince: string;
  readonly openedAt: string | null;
  readonly remindedAt: string | null;
  readonly notifiedAt: string | null;
  readonly error: string | null;
  readonly closedAt: string | null;
}

/** Lists live alarms, the latest first; or the last ones that were closed. */
export async function listAlerts(
  db: Executor,
  { closed = false, limit = 50 } = {},
): Promise<ListedAlert[]> {
  return await db
    .select()
    .from(alerts)
    .where(closed ? isNotNull(alerts.closedAt) : isNull(alerts.closedAt))
    .orderBy(desc(closed ? alerts.closedAt : alerts.pendingSince))
    .limit(limit);
}

/** What became of a message at a target. */
export interface DeliveryResult {
  readonly target: string;
  readonly sentAt: string | null;
  readonly attempts: number;
  readonly error: string | null;
}

/** Reads what became of a message at each target. */
export async function deliveriesOf(db: Executor, messageId: string): Promise<DeliveryResult[]> {
  const { target, sentAt, attempts, error } = notifications;
  return await db
    .select({ target, sentAt, attempts, error })
    .from(notifications)
    .where(eq(notifications.messageId, messageId))
    .orderBy(target);
}

/** Reads of each target when it last took a message, and what it refused since. */
export async function lastDeliveries(db: Executor): Promise<DeliveryResult[]> {
  const { target, sentAt, attempts, error } = notifications;
  return await db
    .select({
      target,
      sentAt: sql<string | null>`max(${sentAt})`,
      attempts: sql<number>`coalesce(sum(${attempts}) filter (where ${sentAt} is null), 0)::int`,
      error: sql<string | null>`max(${error}) filter (where ${sentAt} is null)`,
    })
    .from(notifications)
    .groupBy(target)
    .orderBy(target);
}
