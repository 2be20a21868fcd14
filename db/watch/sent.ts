import { and, eq, gt, isNotNull, isNull, lt, or, type SQL, sql } from 'drizzle-orm';
import { notifyPolicy } from '../../contract/retry-policy.ts';
import type { AlarmNotice } from '../../health/alarms.ts';
import type { Executor } from '../connection/connect.ts';
import { alerts } from '../schema/metersync.ts';

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
