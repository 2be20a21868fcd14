import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  type ScheduleExecutionResult,
  type ScheduleHandle,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type ScheduleSpec,
} from '@temporalio/client';
import {
  type RunKind,
  runKinds,
  scheduleIds,
  taskQueues,
  workflowIds,
  workflowNames,
} from '../contract/names.ts';
import type { ScheduleHealth } from '../contract/verdict.ts';
import { cronComment, timesOf } from './schedule-times.ts';

const minutes = 60_000;
const hours = 60 * minutes;

/** When a schedule starts a run. Either `cron` or `everyMs` is given. */
export interface ScheduleTimes {
  readonly cron?: string | undefined;
  readonly everyMs?: number | undefined;
  /** Time zone of the cron expression; UTC when not given. */
  readonly timeZone?: string | undefined;
  /** Each start is delayed by a random part of this, so that deployments do not ask the service together. */
  readonly jitterMs?: number | undefined;
  /** How late a start may be that was missed while Temporal was away; older ones are skipped. */
  readonly catchUpMs?: number | undefined;
}

interface Definition {
  readonly scheduleId: string;
  readonly workflowType: string;
  readonly workflowId: string;
  readonly times: ScheduleTimes & { readonly jitterMs: number; readonly catchUpMs: number };
}

/** The schedules that a worker makes where they are absent, and that `reset` restores. */
const definitions: Readonly<Record<RunKind, Definition>> = {
  full: {
    scheduleId: scheduleIds.full,
    workflowType: workflowNames.backfillAll,
    workflowId: workflowIds.backfillAll('scheduled'),
    times: { cron: '0 3 * * *', jitterMs: 30 * minutes, catchUpMs: 12 * hours },
  },
  reconcile: {
    scheduleId: scheduleIds.reconcile,
    workflowType: workflowNames.reconcile,
    workflowId: workflowIds.reconcile('scheduled'),
    times: { everyMs: hours, jitterMs: 10 * minutes, catchUpMs: hours },
  },
};

/** A schedule as `metersync schedule show` prints it. Times are ISO 8601 in UTC. */
export interface ScheduleState {
  readonly name: RunKind;
  /** `absent`: no worker has made it yet; `removed`: somebody removed it, and no worker makes it again. */
  readonly state: 'active' | 'paused' | 'removed' | 'absent';
  /** Why it is paused. */
  readonly reason: string | null;
  /** For example `0 3 * * * (UTC)` or `every 15m`. */
  readonly times: string | null;
  readonly jitterSeconds: number;
  readonly catchUpSeconds: number;
  readonly next: readonly string[];
  readonly running: readonly string[];
  /** The latest first. */
  readonly last: readonly {
    readonly scheduledAt: string;
    readonly workflowId: string;
    /** The run's own end state, `running`, or Temporal's status when it ended otherwise. */
    readonly state: string;
  }[];
  /** Number of starts that were skipped because Temporal was away for longer than the catch-up window. */
  readonly missed: number;
}

/** Temporal does not accept a schedule. */
export class ScheduleRefused extends Error {}

const removedNote = 'removed with metersync schedule remove';
const lastRuns = 5;

/** Makes the schedules that are absent. One that was changed, paused or removed stays so. */
export async function ensureSchedules(client: Client): Promise<void> {
  for (const name of runKinds) await create(client, name, definitions[name].times);
}

/**
 * Changes the given parts of a schedule's times and keeps the rest. An absent or removed schedule begins with
 * the default times; a paused one stays paused.
 * @throws ScheduleRefused when a zone is given to a schedule without cron, or Temporal does not accept the
 * times
 */
export async function setSchedule(client: Client, name: RunKind, times: ScheduleTimes): Promise<void> {
  const existing = await describe(client, name);
  if (existing === undefined || isRemoved(existing)) {
    const { cron, everyMs, ...standard } = definitions[name].times;
    const when = times.cron === undefined && times.everyMs === undefined ? { cron, everyMs } : {};
    const { jitterMs = standard.jitterMs, catchUpMs = standard.catchUpMs } = times;
    return await putSchedule(client, name, { ...when, ...givenOf(times), jitterMs, catchUpMs });
  }
  const { cron, everyMs, timeZone, jitterMs, catchUpMs } = times;
  const isCron = cron !== undefined || (everyMs === undefined && (existing.spec.calendars ?? []).length > 0);
  if (timeZone !== undefined && !isCron)
    throw new ScheduleRefused('--time-zone is the zone of --cron, and this schedule has none');
  const timezone = timeZone ?? existing.spec.timezone;
  const spec: ScheduleSpec = {
    ...(cron === undefined && everyMs === undefined ? existing.spec : whenOf(times)),
    ...(isCron && timezone !== undefined ? { timezone } : {}),
    jitter: jitterMs ?? existing.spec.jitter ?? 0,
  };
  await refusingTimes(() =>
    handleOf(client, name).update((before) => ({
      ...before,
      spec,
      policies: { ...before.policies, catchupWindow: catchUpMs ?? before.policies.catchupWindow },
    })),
  );
}

/** Restores a schedule's default times. A paused one stays paused. */
export async function resetSchedule(client: Client, name: RunKind): Promise<void> {
  await putSchedule(client, name, definitions[name].times);
}

async function putSchedule(client: Client, name: RunKind, times: Definition['times']): Promise<void> {
  await refusingTimes(async () => {
    if (await create(client, name, times)) return;
    await handleOf(client, name).update((existing) => ({
      ...existing,
      ...scheduleOf(name, times),
      state: isRemoved(existing) ? { paused: false } : existing.state,
    }));
  });
}

const givenOf = (times: ScheduleTimes): ScheduleTimes =>
  Object.fromEntries(Object.entries(times).filter(([, value]) => value !== undefined));

async function refusingTimes(change: () => Promise<void>): Promise<void> {
  try {
    await change();
  } catch (error) {
    // The client throws TypeError for what the server calls an invalid argument.
    if (!(error instanceof TypeError)) throw error;
    throw new ScheduleRefused(`Temporal does not take these times: ${error.message}`, { cause: error });
  }
}

/** Pauses a schedule. @throws Error when there is no such schedule, as do the functions below */
export async function pauseSchedule(client: Client, name: RunKind, reason: string): Promise<void> {
  await (await there(client, name)).pause(reason);
}

export async function resumeSchedule(client: Client, name: RunKind): Promise<void> {
  await (await there(client, name)).unpause('resumed with metersync schedule resume');
}

/** Starts a run now; while one runs, it waits for its turn. */
export async function triggerSchedule(client: Client, name: RunKind): Promise<void> {
  await (await there(client, name)).trigger(ScheduleOverlapPolicy.BUFFER_ONE);
}

/**
 * Removes the schedule's times and leaves it paused, so that Temporal remembers the removal and no worker
 * makes it again.
 */
export async function removeSchedule(client: Client, name: RunKind): Promise<void> {
  const handle = await there(client, name);
  await handle.update((existing) => ({ ...existing, spec: {}, state: { paused: true, note: removedNote } }));
}

export async function readSchedule(client: Client, name: RunKind): Promise<ScheduleState> {
  const existing = await describe(client, name);
  const none = { next: [], running: [], last: [], missed: 0, reason: null, times: null };
  if (existing === undefined) return { name, state: 'absent', ...none, jitterSeconds: 0, catchUpSeconds: 0 };
  const { info, spec, policies, state } = existing;
  const recent = info.recentActions.slice(-lastRuns).reverse();
  const removed = isRemoved(existing);
  return {
    name,
    state: removed ? 'removed' : state.paused ? 'paused' : 'active',
    reason: state.paused && !removed ? (state.note ?? null) : null,
    times: removed ? null : timesOf(spec),
    jitterSeconds: (spec.jitter ?? 0) / 1000,
    catchUpSeconds: policies.catchupWindow / 1000,
    next: state.paused ? [] : info.nextActionTimes.slice(0, lastRuns).map((at) => at.toISOString()),
    running: info.runningActions.map(({ workflow }) => workflow.workflowId),
    last: await Promise.all(recent.map((run) => endOf(client, run))),
    missed: info.numActionsMissedCatchupWindow,
  };
}

/** Reads a schedule's state, without the runs that it started. */
export async function readScheduleHealth(client: Client, name: RunKind): Promise<ScheduleHealth> {
  const existing = await describe(client, name);
  if (existing === undefined)
    return { name, state: 'absent', reason: null, next: null, intervalSeconds: null, missed: 0 };
  const { info, state } = existing;
  const removed = isRemoved(existing);
  return {
    name,
    state: removed ? 'removed' : state.paused ? 'paused' : 'active',
    reason: state.paused && !removed ? (state.note ?? null) : null,
    next: state.paused ? null : (info.nextActionTimes[0]?.toISOString() ?? null),
    intervalSeconds: state.paused ? null : longestInterval(info.nextActionTimes),
    missed: info.numActionsMissedCatchupWindow,
  };
}

/** The longest time from one start to the next, in seconds; null for fewer than two. */
function longestInterval(starts: readonly Date[]): number | null {
  const intervals = starts.slice(1).map((start, at) => start.getTime() - (starts[at]?.getTime() ?? 0));
  return intervals.length === 0 ? null : Math.max(...intervals) / 1_000;
}

async function create(client: Client, name: RunKind, times: Definition['times']): Promise<boolean> {
  const { scheduleId } = definitions[name];
  try {
    await client.schedule.create({ scheduleId, ...scheduleOf(name, times) });
    return true;
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return false;
    throw error;
  }
}

function scheduleOf(name: RunKind, times: Definition['times']) {
  const { workflowType, workflowId } = definitions[name];
  const { timeZone, jitterMs, catchUpMs } = times;
  const spec: ScheduleSpec = {
    ...whenOf(times),
    ...(timeZone === undefined ? {} : { timezone: timeZone }),
    jitter: jitterMs,
  };
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

const whenOf = ({ cron, everyMs }: ScheduleTimes): ScheduleSpec => ({
  // Temporal turns the expression into calendars; only the comment keeps it readable.
  ...(cron === undefined ? {} : { cronExpressions: [`${cron} ${cronComment(cron)}`] }),
  ...(everyMs === undefined ? {} : { intervals: [{ every: everyMs }] }),
});

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

const isRemoved = ({ state }: ScheduleDescription): boolean => state.paused && state.note === removedNote;

async function there(client: Client, name: RunKind): Promise<ScheduleHandle> {
  const existing = await describe(client, name);
  if (existing !== undefined && !isRemoved(existing)) return handleOf(client, name);
  const what = existing === undefined ? 'there is no' : 'somebody removed the';
  throw new Error(`${what} schedule ${name}: metersync schedule reset ${name} makes it`);
}

async function endOf(client: Client, run: ScheduleExecutionResult): Promise<ScheduleState['last'][number]> {
  const { workflowId } = run.action.workflow;
  // Without a run id, as a long run continues as new under another one.
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
