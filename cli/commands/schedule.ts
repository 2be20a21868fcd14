import { shortDuration } from '../../app/temporal/schedule-times.ts';
import {
  pauseSchedule,
  readSchedule,
  resumeSchedule,
  type ScheduleState,
} from '../../app/temporal/schedules.ts';
import { connectClient } from '../../app/temporal/temporal.ts';
import { openToAsk } from '../../app/warehouse/warehouse.ts';
import { type RunKind, runKinds } from '../../contract/names.ts';
import { formatTime, timeAgo } from '../../contract/times.ts';
import { counted } from '../../contract/words.ts';
import { pausedInWords } from '../../health/run-findings.ts';
import { recordedWherePossible } from '../../operations/recorded.ts';
import { asOperation, sayUnnoted } from '../as-operation.ts';
import { type Context, openContext } from '../context.ts';
import { print, printJson } from '../print.ts';

export type ScheduleAction = 'show' | 'pause' | 'resume';

export interface ScheduleOptions {
  reason?: string;
  json?: boolean;
}

/**
 * `metersync schedule`: shows or pauses runs that start by themselves. Prints the schedule after the change.
 */
export async function schedule(
  action: ScheduleAction,
  name: RunKind | undefined,
  options: ScheduleOptions,
): Promise<void> {
  const context = await openContext({
    // Changes are noted in the warehouse's log of operations, if the warehouse is there.
    postgres: action !== 'show',
    temporal: true,
    service: false,
    quiet: true,
    existing: true,
  });
  try {
    const { client, close } = await connectClient(context.stack.temporal);
    try {
      if (action !== 'show' && name !== undefined)
        await noted(context, action, name, options, (by) =>
          action === 'pause'
            ? pauseSchedule(client, name, { by, reason: options.reason, at: new Date() })
            : resumeSchedule(client, name),
        );
      const names = name === undefined ? runKinds : [name];
      const schedules = await Promise.all(names.map((kind) => readSchedule(client, kind)));
      if (options.json) printJson({ schedules });
      else print(...schedules.flatMap(describeSchedule));
    } finally {
      await close();
    }
  } finally {
    await context.stop();
  }
}

async function noted(
  { settings, stack, log }: Context,
  action: Exclude<ScheduleAction, 'show'>,
  name: RunKind,
  { reason }: ScheduleOptions,
  work: (by: string) => Promise<void>,
): Promise<void> {
  const operation = asOperation(settings, `schedule ${action}`, {
    schedule: name,
    ...(reason === undefined ? {} : { reason }),
  });
  const warehouse = openToAsk(settings, stack.databaseUrl, log, 1);
  try {
    await recordedWherePossible(
      warehouse.db,
      operation,
      () => work(operation.actor),
      () => 'done',
      sayUnnoted,
    );
  } finally {
    await warehouse.close();
  }
}

/** Says in what state a schedule is, and what to do about it. */
function stateOf({ name, state, reason }: ScheduleState): string[] {
  if (state === 'active') return [];
  if (state === 'absent')
    return ['does not exist: a worker creates it when it starts, unless its setting is none'];
  return [pausedInWords(reason), `resume with metersync schedule resume ${name}`];
}

/** The time in the zone of a schedule, where that is another than UTC: `0 3 * * * (Europe/Berlin)`. */
function localTime(at: string, times: string | null): string {
  const [, timeZone = 'UTC'] = /\((\S+)\)$/.exec(times ?? '') ?? [];
  if (timeZone === 'UTC') return '';
  const clock = new Date(at).toLocaleTimeString('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' });
  return `, ${clock} in ${timeZone}`;
}

/** Describes a schedule in lines for people. */
function describeSchedule(now: ScheduleState): string[] {
  const { name, times, next, last, running, missed } = now;
  const window = `jitter ${shortDuration(now.jitterSeconds * 1000)}, catches up ${shortDuration(now.catchUpSeconds * 1000)}`;
  const heading = [...stateOf(now), ...(times === null ? [] : [`${times}, ${window}`])];
  const lines = [`${name}: ${heading.join('; ')}`];
  const [first, ...then] = next;
  if (first !== undefined)
    lines.push(
      `  next: ${[`${timeAgo(first)}${localTime(first, times)}`, ...then.slice(0, 2).map(formatTime)].join(', ')}`,
    );
  if (running.length > 0) lines.push(`  running: ${running.join(', ')}`);
  for (const run of last) lines.push(`  ${timeAgo(run.scheduledAt)}: ${run.state} (${run.workflowId})`);
  if (missed > 0)
    lines.push(
      `  ${counted(missed, 'start')} ${missed === 1 ? 'was' : 'were'} missed while Temporal was down`,
    );
  return lines;
}
