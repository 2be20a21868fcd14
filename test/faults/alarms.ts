import { and, eq, isNotNull } from 'drizzle-orm';
import { alerts, heartbeat } from '../../db/schema/metersync.ts';
import { type AlarmName, isAlarmName } from '../../health/findings.ts';
import { until } from '../support/poll.ts';
import { trueTime } from './pace.ts';
import type { Rig } from './rig.ts';

/** An alarm that a fault raised. */
export interface Raised {
  readonly name: AlarmName;
  /** The longest time from a harm to the alarm, or null if the alarm began before any harm. */
  readonly afterSeconds: number | null;
}

/** Alarms that stay until somebody acts, an event arrives, or a day is over. Others close after the fault. */
const lasting: readonly AlarmName[] = [
  'AuditDiffers',
  'ChangesMissed',
  'Decide',
  'RecordsRefused',
  'EventsDead',
  'EventsMissing',
  'RunUnwell',
  'Silent',
];

/** Waits until all alarms whose reason is over are closed, and then reads all alarms that were opened. */
export async function raisedAlarms({ warehouse, harmedAt, epoch }: Rig): Promise<Raised[]> {
  const opened = async () => await warehouse.db.select().from(alerts).where(isNotNull(alerts.openedAt));
  const lastLook = async () => (await warehouse.db.select().from(heartbeat))[0]?.at;
  const before = await lastLook();
  // If a worker is killed during a look, the next look waits for the time-out of the activity.
  const within = { timeoutMs: 180_000, everyMs: 200 };
  await until('a look sees that the fault is over', async () => (await lastLook()) !== before, within);
  const rows = await until(
    'alarms are closed whose reason is over',
    async () => {
      const all = await opened();
      const open = all.filter(({ name, closedAt }) => closedAt === null && !isOneOf(lasting, name));
      if (open.length > 0) throw new Error(`open: ${JSON.stringify(open)}`);
      return all;
    },
    within,
  );
  const longest = new Map<AlarmName, number | null>();
  for (const { name, pendingSince, openedAt } of rows) {
    if (!isAlarmName(name)) throw new Error(`no alarm of the catalogue: ${name}`);
    const [began, at] = [pendingSince, openedAt ?? ''].map((text) => trueTime(epoch, Date.parse(text)));
    const harm = harmedAt.findLast((harmed) => harmed <= (began ?? 0));
    const seconds = harm === undefined ? null : Math.round(((at ?? 0) - harm) / 1_000);
    longest.set(name, longerOf(longest.get(name) ?? null, seconds));
  }
  return [...longest].map(([name, afterSeconds]) => ({ name, afterSeconds }));
}

/** Waits until an alarm is open. */
export async function untilRaised({ warehouse }: Rig, name: AlarmName): Promise<void> {
  const raised = and(eq(alerts.name, name), isNotNull(alerts.openedAt));
  await until(
    `${name} is raised`,
    async () => (await warehouse.db.select().from(alerts).where(raised)).length > 0,
    { timeoutMs: 180_000, everyMs: 200 },
  );
}

/** Returns the longer of two times. Each of them may be unknown. */
export const longerOf = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);

const isOneOf = (names: readonly AlarmName[], name: string): boolean =>
  (names as readonly string[]).includes(name);
