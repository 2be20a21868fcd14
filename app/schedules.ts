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

/** When a schedule starts a run. Of `cron` and `everyMs` one is given. */
export interface ScheduleTimes {
  readonly cron?: string | undefined;
  readonly everyMs?: number | undefined;
  /** Of the cron expression; UTC when not given. */
  readonly timeZone?: string | undefined;
  /** Each start is put off by a random part of this, so that not everybody asks the service at the full hour. */
  readonly jitterMs?: number | undefined;
  /** How late a start may be that was missed while Temporal was away; what is older is left out. */
  readonly catchUpMs?: number | undefined;
}

interface Definition {
  readonly scheduleId: string;
  readonly workflowType: string;
  readonly workflowId: string;
  readonly times: ScheduleTimes & { readonly jitterMs: number; readonly catchUpMs: number };
}

/** What a worker makes when it is not there, and `reset` gives. */
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

/** A schedule as `metersync schedule show` tells it. Times are ISO 8601 in UTC. */
export interface ScheduleState {
  readonly name: RunKind;
  /** `absent`: no worker has made it yet; `removed`: somebody removed it, and no worker makes it anew. */
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
    /** How the run ended, or `running`; what Temporal says of it when it ended otherwise. */
    readonly state: string;
  }[];
  /** Starts that were left out because Temporal was away for longer than the catch-up window. */
  readonly missed: number;
}

/** A schedule that Temporal does not take as it is given. */
export class ScheduleRefused extends Error {}

const removedNote = 'removed with metersync schedule remove';
const lastRuns = 5;

/** Makes the schedules that are not there. One that was changed, paused or removed stays as it is. */
export async function ensureSchedules(client: Client): Promise<void> {
  for (const name of runKinds) await create(client, name, definitions[name].times);
}

/**
 * Changes what is given of a schedule's times and keeps the rest; a schedule that is not there, or that somebody removed, begins
 * with the default. A paused one stays paused.
 * @throws ScheduleRefused when a zone is given to a schedule without a cron expression, or Temporal does not take the times
 */
export async function setSchedule(client: Client, name: RunKind, times: ScheduleTimes): Promise<void> {
  const known = await describe(client, name);
  if (known === undefined || isRemoved(known)) {
    const { cron, everyMs, ...standard } = definitions[name].times;
    const when = times.cron === undefined && times.everyMs === undefined ? { cron, everyMs } : {};
    const { jitterMs = standard.jitterMs, catchUpMs = standard.catchUpMs } = times;
    return await putSchedule(client, name, { ...when, ...givenOf(times), jitterMs, catchUpMs });
  }
  const { cron, everyMs, timeZone, jitterMs, catchUpMs } = times;
  const isCron = cron !== undefined || (everyMs === undefined && (known.spec.calendars ?? []).length > 0);
  if (timeZone !== undefined && !isCron)
    throw new ScheduleRefused('--time-zone is the zone of --cron, and this schedule has none');
  const timezone = timeZone ?? known.spec.timezone;
  const spec: ScheduleSpec = {
    ...(cron === undefined && everyMs === undefined ? known.spec : whenOf(times)),
    ...(isCron && timezone !== undefined ? { timezone } : {}),
    jitter: jitterMs ?? known.spec.jitter ?? 0,
  };
  await refusingTimes(() =>
    handleOf(client, name).update((before) => ({
      ...before,
      spec,
      policies: { ...before.policies, catchupWindow: catchUpMs ?? before.policies.catchupWindow },
    })),
  );
}

/** Gives a schedule the times that a worker would make it with, whatever it has. A paused one stays paused. */
export async function resetSchedule(client: Client, name: RunKind): Promise<void> {
  await putSchedule(client, name, definitions[name].times);
}

async function putSchedule(client: Client, name: RunKind, times: Definition['times']): Promise<void> {
  await refusingTimes(async () => {
    if (await create(client, name, times)) return;
    await handleOf(client, name).update((known) => ({
      ...known,
      ...scheduleOf(name, times),
      state: isRemoved(known) ? { paused: false } : known.state,
    }));
  });
}

const givenOf = (times: ScheduleTimes): ScheduleTimes =>
  Object.fromEntries(Object.entries(times).filter(([, value]) => value !== undefined));

async function refusingTimes(change: () => Promise<void>): Promise<void> {
  try {
    await change();
  } catch (error) {
    // So the client tells what the server calls an invalid argument.
    if (!(error instanceof TypeError)) throw error;
    throw new ScheduleRefused(`Temporal does not take these times: ${error.message}`, { cause: error });
  }
}

/** @throws Error when there is no such schedule, as do those below */
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
 * Takes the schedule's times away and leaves it paused: it is Temporal that remembers that somebody removed it, so
 * that no worker makes it anew.
 */
export async function removeSchedule(client: Client, name: RunKind): Promise<void> {
  const handle = await there(client, name);
  await handle.update((known) => ({ ...known, spec: {}, state: { paused: true, note: removedNote } }));
}

export async function readSchedule(client: Client, name: RunKind): Promise<ScheduleState> {
  const known = await describe(client, name);
  const none = { next: [], running: [], last: [], missed: 0, reason: null, times: null };
  if (known === undefined) return { name, state: 'absent', ...none, jitterSeconds: 0, catchUpSeconds: 0 };
  const { info, spec, policies, state } = known;
  const recent = info.recentActions.slice(-lastRuns).reverse();
  const removed = isRemoved(known);
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

/** A schedule, without the runs that it started. */
export async function readScheduleHealth(client: Client, name: RunKind): Promise<ScheduleHealth> {
  const known = await describe(client, name);
  if (known === undefined) return { name, state: 'absent', reason: null, next: null };
  const { info, state } = known;
  const removed = isRemoved(known);
  return {
    name,
    state: removed ? 'removed' : state.paused ? 'paused' : 'active',
    reason: state.paused && !removed ? (state.note ?? null) : null,
    next: state.paused ? null : (info.nextActionTimes[0]?.toISOString() ?? null),
  };
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
  // Without arguments: a payload would be as old as the schedule, and its key long gone.
  const action = {
    type: 'startWorkflow' as const,
    ...{ workflowType, workflowId, taskQueue: taskQueues.backfill, args: [] },
  };
  const policies = { overlap: ScheduleOverlapPolicy.BUFFER_ONE, catchupWindow: catchUpMs };
  return { spec, action, policies };
}

const whenOf = ({ cron, everyMs }: ScheduleTimes): ScheduleSpec => ({
  // Temporal turns the expression into calendars; its comment is what still shows it.
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
  const known = await describe(client, name);
  if (known !== undefined && !isRemoved(known)) return handleOf(client, name);
  const what = known === undefined ? 'there is no' : 'somebody removed the';
  throw new Error(`${what} schedule ${name}: metersync schedule reset ${name} makes it`);
}

async function endOf(client: Client, run: ScheduleExecutionResult): Promise<ScheduleState['last'][number]> {
  const { workflowId } = run.action.workflow;
  // Without a run id, as a long run continues as new.
  const handle = client.workflow.getHandle(workflowId);
  const told = { scheduledAt: run.scheduledAt.toISOString(), workflowId };
  try {
    const { status } = await handle.describe();
    if (status.name !== 'COMPLETED') return { ...told, state: status.name.toLowerCase() };
    return { ...told, state: String(await handle.result()) };
  } catch {
    return { ...told, state: 'forgotten by Temporal' };
  }
}
