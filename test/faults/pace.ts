import type { Health } from '../../health/measured.ts';

/** A second of the rig represents a minute: the watch runs each second, with a clock 60 times as fast. */
const pace = 60;
/** A second without an event represents an hour. */
const silencePace = 3_600;

/** The name of the variable with the time at which the hurried clocks of all workers began. */
export const epochVariable = 'FAULTS_EPOCH';

/** Returns a clock that shows the Unix time in ms, hurried since the epoch. */
export const hurriedClock = (epoch: number) => (): number => epoch + (Date.now() - epoch) * pace;

/** Returns the true time at which the hurried clock showed the given time. */
export const trueTime = (epoch: number, hurried: number): number => epoch + (hurried - epoch) / pace;

/** Makes waiting work older. Runs of schedules stay as they are, because schedules are not accelerated. */
export function hurriedHealth(health: Health): Health {
  const { warehouse } = health;
  if ('away' in warehouse) return health;
  const { silence, runs, oldestDueSeconds, late } = warehouse;
  const older = <T extends { underWay: (typeof runs)['full']['underWay'] }>(kind: T): T => {
    if (kind.underWay === null) return kind;
    const { progressSecondsAgo } = kind.underWay;
    return { ...kind, underWay: { ...kind.underWay, progressSecondsAgo: progressSecondsAgo * pace } };
  };
  const hurried = (seconds: number | null) => (seconds === null ? null : seconds * pace);
  const { quietSeconds } = silence;
  return {
    ...health,
    warehouse: {
      ...warehouse,
      oldestDueSeconds: hurried(oldestDueSeconds),
      late: late && { ...late, settledSecondsAgo: hurried(late.settledSecondsAgo) },
      runs: { full: older(runs.full), reconcile: older(runs.reconcile) },
      silence: { ...silence, quietSeconds: quietSeconds === null ? null : quietSeconds * silencePace },
    },
  };
}
