import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import type { Notification } from '../../contract/notification.ts';
import type { Database } from '../connect.ts';
import { alerts, notifications } from '../schema/metersync.ts';

/** What became of the first message that waits for a target. */
export type Delivery = 'sent' | 'failed' | 'none';

/**
 * Sends the first message that waits for a target, and marks it. Only one process at a time sends
 * to a target. Whoever is killed between sending and marking leaves the message, and it is sent
 * again with the same id.
 * @param send throws Error, whose message is kept and holds no secret
 */
export async function deliverNext(
  db: Database,
  {
    target,
    now,
    send,
  }: { target: string; now: () => string; send: (message: Notification) => Promise<void> },
): Promise<Delivery> {
  return await db.transaction(async (tx) => {
    const isWaiting = and(eq(notifications.target, target), isNull(notifications.sentAt));
    const [next] = await tx
      .select({ id: notifications.messageId })
      .from(notifications)
      .where(isWaiting)
      .orderBy(asc(notifications.madeAt))
      .limit(1);
    if (next === undefined) return 'none';
    const isNext = and(isWaiting, eq(notifications.messageId, next.id));
    // Held until it is marked: whoever comes meanwhile leaves the target to us.
    const [first] = await tx
      .select({ message: notifications.message })
      .from(notifications)
      .where(isNext)
      .for('update', { skipLocked: true });
    if (first === undefined) return 'none';
    const error = await send(first.message).then(
      () => null,
      // It may quote an answer, and Postgres's text cannot hold NUL.
      (failure: Error) => failure.message.replaceAll('\0', '\\0').toWellFormed(),
    );
    await tx
      .update(notifications)
      .set({
        attempts: sql`${notifications.attempts} + 1`,
        error,
        ...(error === null ? { sentAt: now() } : {}),
      })
      .where(isNext);
    await noteOnAlerts(tx, first.message, error === null ? now() : undefined);
    return error === null ? 'sent' : 'failed';
  });
}

/** Notes on the alarms of a message when it was taken, and who has not. */
async function noteOnAlerts(
  tx: Pick<Database, 'execute'>,
  { alerts: notices }: Notification,
  takenAt: string | undefined,
): Promise<void> {
  for (const { id } of notices)
    await tx.execute(sql`
      update ${alerts} set
        notified_at = coalesce(${takenAt ?? null}::timestamptz, notified_at),
        error = (
          select string_agg(n.target || ': ' || n.error, '; ' order by n.target)
          from ${notifications} n
          where n.sent_at is null
            and n.error is not null
            and ${id}::uuid = any(n.alert_ids)
        )
      where id = ${id}::uuid`);
}
