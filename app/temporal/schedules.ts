import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  type ScheduleExecutionResult,
  type ScheduleHandle,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import {
  type RunKind,
  runKinds,
  scheduleIds,
  taskQueues,
  workflowIds,
  workflowNames,
} from '../../contract/names.ts';
import { formatTime } from '../../contract/times.ts';
import type { ScheduleHealth } from '../../health/measured.ts';
import { SettingsError } from '../settings/settings.ts';
import { cronComment, describeTimes, type ScheduleTimes, timesOf } from './schedule-times.ts';

const minutes = 60_000;
const hours = 60 * minutes;

export type ScheduleSettings = Readonly<Record<RunKind, ScheduleTimes | undefined>>;

interface Definition {
  readonly scheduleId: string;
  readonly workflowType: string;
  readonly workflowId: string;
  readonly setting: string;
  /** Each start is delayed by a random part of this, so that deployments do not read at the same time. */
  readonly jitterMs: (times: ScheduleTimes) => number;
  /** How late a start that was missed while Temporal was down may still happen. Older starts are skipped. */
  readonly catchUpMs: number;
}

const definitions: Readonly<Record<RunKind, Definition>> = {
  full: {
    scheduleId: scheduleIds.full,
    workflowType: workflowNames.backfill,
    workflowId: workflowIds.backfill('scheduled'),
    setting: 'BACKFILL_CRON',
    jitterMs: () => 30 * minutes,
    catchUpMs: 12 * hours,
  },
  reconcile: {
    scheduleId: scheduleIds.reconcile,
    workflowType: workflowNames.backfillUpdates,
    workflowId: workflowIds.reconcile('scheduled'),
    setting: 'RECONCILE_EVERY',
    jitterMs: (times) => Math.min('everyMs' in times ? times.everyMs / 6 : hours, 10 * minutes),
    catchUpMs: hours,
  },
};

/** A schedule as `metersync schedule show` prints it. Times are ISO 8601 in UTC. */
export interface ScheduleState {
  readonly name: RunKind;
  /** `absent`: no worker has created it yet, or its setting is `none`. */
  readonly state: 'active' | 'paused' | 'absent';
  readonly reason: string | null;
  /** For example `0 3 * * * (UTC)` or `every 15m`. */
  readonly times: string | null;
  readonly jitterSeconds: number;
  readonly catchUpSeconds: number;
  readonly next: readonly string[];
  readonly running: readonly string[];
  readonly last: readonly {
    readonly scheduledAt: string;
    readonly workflowId: string;
    /** The run's own end state, `running`, or Temporal's status when it ended otherwise. */
    readonly state: string;
  }[];
  /** Number of starts that were skipped because Temporal was away for longer than the catch-up window. */
  readonly missed: number;
}

const lastRuns = 5;

/**
 * Gives the schedules the times of the settings, and deletes those whose setting is `none`. Keeps pauses.
 * Does not update a schedule that has its times, because Temporal forgets missed starts then.
 * @throws SettingsError if Temporal does not accept the times
 */
export async function applySchedules(client: Client, settings: ScheduleSettings): Promise<void> {
  for (const name of runKinds) {
    const times = settings[name];
    if (times === undefined) await deleteSchedule(client, name);
    else await refusingTimes(name, () => putSchedule(client, name, times));
  }
}

async function deleteSchedule(client: Client, name: RunKind): Promise<void> {
  try {
    await handleOf(client, name).delete();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
}

async function putSchedule(client: Client, name: RunKind, times: ScheduleTimes): Promise<void> {
  const wanted = scheduleOf(name, times);
  const existing = await describe(client, name);
  if (existing === undefined) {
    if (await create(client, name, wanted)) return;
    return await putSchedule(client, name, times);
  }
  const { spec, policies, action } = existing;
  const isSame =
    action.type === 'startWorkflow' &&
    action.workflowType === wanted.action.workflowType &&
    timesOf(spec) === describeTimes(times) &&
    (spec.jitter ?? 0) === wanted.spec.jitter &&
    policies.catchupWindow === wanted.policies.catchupWindow;
  if (!isSame) await handleOf(client, name).update((before) => ({ ...before, ...wanted }));
}

async function refusingTimes(name: RunKind, change: () => Promise<void>): Promise<void> {
  try {
    await change();
  } catch (error) {
    // The client throws TypeError for what the server calls an invalid argument.
    if (!(error instanceof TypeError)) throw error;
    throw new SettingsError([`${definitions[name].setting}: Temporal does not accept it: ${error.message}`]);
  }
}

/** Pauses a schedule, with a note of who, when and why. Throws an Error if there is no such schedule. */
export async function pauseSchedule(
  client: Client,
  name: RunKind,
  { by, reason, at }: { readonly by: string; readonly reason: string | undefined; readonly at: Date },
): Promise<void> {
  const why = reason === undefined ? ', no reason given' : `: ${reason}`;
  await (await there(client, name)).pause(`paused by ${by} at ${formatTime(at.toISOString())}${why}`);
}

export async function resumeSchedule(client: Client, name: RunKind): Promise<void> {
  await (await there(client, name)).unpause('resumed with metersync schedule resume');
}

export async function readSchedule(client: Client, name: RunKind): Promise<ScheduleState> {
  const existing = await describe(client, name);
  const none = { next: [], running: [], last: [], missed: 0, reason: null, times: null };
  if (existing === undefined) return { name, state: 'absent', ...none, jitterSeconds: 0, catchUpSeconds: 0 };
  const { info, spec, policies, state } = existing;
  const recent = info.recentActions.slice(-lastRuns).reverse();
  return {
    name,
    state: state.paused ? 'paused' : 'active',
    reason: state.paused ? (state.note ?? null) : null,
    times: timesOf(spec),
    jitterSeconds: (spec.jitter ?? 0) / 1000,
    catchUpSeconds: policies.catchupWindow / 1000,
    next: state.paused ? [] : info.nextActionTimes.slice(0, lastRuns).map((at) => at.toISOString()),
    running: info.runningActions.map(({ workflow }) => workflow.workflowId),
    last: await Promise.all(recent.map((run) => endOf(client, run))),
    missed: info.numActionsMissedCatchupWindow,
  };
}

/** Reads a schedule's state, without the runs that it started. */
export async function readScheduleHealth(
  client: Client,
  name: RunKind,
): Promise<Omit<ScheduleHealth, 'isWanted'>> {
  const existing = await describe(client, name);
  if (existing === undefined)
    return { name, state: 'absent', reason: null, next: null, intervalSeconds: null };
  const { info, state } = existing;
  return {
    name,
    state: state.paused ? 'paused' : 'active',
    reason: state.paused ? (state.note ?? null) : null,
    next: state.paused ? null : (info.nextActionTimes[0]?.toISOString() ?? null),
    intervalSeconds: state.paused ? null : longestInterval(info.nextActionTimes),
  };
}

/** The longest time from one start to the next, in seconds; null for fewer than two. */
function longestInterval(starts: readonly Date[]): number | null {
  const intervals = starts.slice(1).map((start, at) => start.getTime() - (starts[at]?.getTime() ?? 0));
  return intervals.length === 0 ? null : Math.max(...intervals) / 1_000;
}

async function create(
  client: Client,
  name: RunKind,
  schedule: ReturnType<typeof scheduleOf>,
): Promise<boolean> {
  try {
    await client.schedule.create({ scheduleId: definitions[name].scheduleId, ...schedule });
    return true;
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return false;
    throw error;
  }
}

function scheduleOf(name: RunKind, times: ScheduleTimes) {
  const { workflowType, workflowId, jitterMs, catchUpMs } = definitions[name];
  const jitter = jitterMs(times);
  const spec =
    'cron' in times
      ? // Temporal turns the expression into calendars; only the comment keeps it readable.
        { cronExpressions: [`${times.cron} ${cronComment(times.cron)}`], timezone: times.timeZone, jitter }
      : { intervals: [{ every: times.everyMs }], jitter };
  // No arguments: a payload would be as old as the schedule, and its key may be long gone.
  const action = {
    type: 'startWorkflow' as const,
    workflowType,
    workflowId,
    taskQueue: taskQueues.backfill,
    args: [],
  };
  const policies = { overlap: ScheduleOverlapPolicy.BUFFER_ONE, catchupWindow: catchUpMs };
  return { spec, action, policies };
}

const handleOf = (client: Client, name: RunKind): ScheduleHandle =>
  client.schedule.getHandle(definitions[name].scheduleId);

async function describe(client: Client, name: RunKind): Promise<ScheduleDescription | undefined> {
  try {
    return await handleOf(client, name).describe();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined;
    throw error;
  }
}

async function there(client: Client, name: RunKind): Promise<ScheduleHandle> {
  if ((await describe(client, name)) !== undefined) return handleOf(client, name);
  const { setting } = definitions[name];
  throw new Error(
    `the schedule ${name} does not exist: a worker creates it when it starts, unless ${setting} is none`,
  );
}

async function endOf(client: Client, run: ScheduleExecutionResult): Promise<ScheduleState['last'][number]> {
  const { workflowId } = run.action.workflow;
  // Without a run id, because a long run continues as new under another run id.
  const handle = client.workflow.getHandle(workflowId);
  const start = { scheduledAt: run.scheduledAt.toISOString(), workflowId };
  try {
    const { status } = await handle.describe();
    if (status.name !== 'COMPLETED') return { ...start, state: status.name.toLowerCase() };
    return { ...start, state: String(await handle.result()) };
  } catch {
    return { ...start, state: 'forgotten by Temporal' };
  }
}
