import { and, isNotNull, isNull, sql } from 'drizzle-orm';
import type { WatchHealth } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { alerts, heartbeat } from '../schema/metersync.ts';
import { isToSend } from '../watch/sent.ts';
import { secondsSince } from './counted.ts';

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
