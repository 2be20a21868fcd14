import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Finding } from '../../health/verdict.ts';
import type { Executor } from '../connection/connect.ts';
import { alerts } from '../schema/metersync.ts';

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
