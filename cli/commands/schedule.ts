import { shortDuration } from '../../app/schedule-times.ts';
import {
  pauseSchedule,
  readSchedule,
  removeSchedule,
  resetSchedule,
  resumeSchedule,
  ScheduleRefused,
  type ScheduleState,
  setSchedule,
  triggerSchedule,
} from '../../app/schedules.ts';
import { connectClient } from '../../app/temporal.ts';
import { type RunKind, runKinds } from '../../contract/names.ts';
import { shownTime, timeAgo } from '../../contract/times.ts';
import { counted } from '../../contract/words.ts';
import { openContext } from '../context.ts';
import { UsageError } from '../errors.ts';
import { print, printJson } from '../print.ts';

export type ScheduleAction = 'set' | 'reset' | 'show' | 'pause' | 'resume' | 'trigger' | 'remove';

export interface ScheduleOptions {
  cron?: string;
  every?: number;
  timeZone?: string;
  jitter?: number;
  catchUp?: number;
  reason?: string;
  json?: boolean;
}

/** With less time between them, a run would begin before the previous one could have read anything. */
const everyMinMs = 60_000;

/**
 * `metersync schedule`: changes or shows when runs start by themselves. Prints the schedule after the change.
 */
export async function schedule(
  action: ScheduleAction,
  name: RunKind | undefined,
  options: ScheduleOptions,
): Promise<void> {
  if (action === 'set') checkTimes(options);
  const context = await openContext({
    postgres: false,
    temporal: true,
    service: false,
    quiet: true,
    existing: true,
  });
  try {
    const { client, close } = await connectClient(context.stack.temporal);
    try {
      await act(client, action, name ?? 'full', options);
      const names = action === 'show' && name === undefined ? runKinds : [name ?? 'full'];
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

function checkTimes(options: ScheduleOptions): void {
  const { json: _, ...named } = options;
  if (Object.keys(named).length === 0) {
    throw new UsageError(
      'say what to change: --cron, --every, --time-zone, --jitter or --catch-up; metersync schedule reset goes back to the default',
    );
  }
  if (options.every !== undefined && options.every < everyMinMs) {
    throw new UsageError('--every must be a minute or more');
  }
  if (options.every !== undefined && options.timeZone !== undefined) {
    throw new UsageError('--time-zone is the zone of --cron: --every has none');
  }
}

type Client = Parameters<typeof readSchedule>[0];

async function act(
  client: Client,
  action: ScheduleAction,
  name: RunKind,
  options: ScheduleOptions,
): Promise<void> {
  const { cron, every: everyMs, timeZone, jitter: jitterMs, catchUp: catchUpMs } = options;
  const actions: Readonly<Record<ScheduleAction, () => Promise<void>>> = {
    set: () => setSchedule(client, name, { cron, everyMs, timeZone, jitterMs, catchUpMs }),
    reset: () => resetSchedule(client, name),
    show: async () => {},
    pause: () => pauseSchedule(client, name, options.reason ?? 'paused with metersync schedule pause'),
    resume: () => resumeSchedule(client, name),
    trigger: () => triggerSchedule(client, name),
    remove: () => removeSchedule(client, name),
  };
  try {
    await actions[action]();
  } catch (error) {
    throw error instanceof ScheduleRefused ? new UsageError(error.message) : error;
  }
}

const states: Readonly<Record<ScheduleState['state'], string>> = {
  active: '',
  paused: 'paused',
  removed: 'removed: workers do not make it again; metersync schedule reset does',
  absent: 'not there: a worker makes it when it starts, or metersync schedule reset',
};

/** Describes a schedule in lines for people. */
export function describeSchedule(now: ScheduleState): string[] {
  const { name, state, reason, times, next, last, running, missed } = now;
  const window = `jitter ${shortDuration(now.jitterSeconds * 1000)}, catches up ${shortDuration(now.catchUpSeconds * 1000)}`;
  const heading = [states[state], reason, times === null ? '' : `${times}, ${window}`];
  const lines = [`${name}: ${heading.filter((part) => part !== '' && part !== null).join('; ')}`];
  const [first, ...then] = next;
  if (first !== undefined)
    lines.push(`  next: ${[timeAgo(first), ...then.slice(0, 2).map(shownTime)].join(', ')}`);
  if (running.length > 0) lines.push(`  running: ${running.join(', ')}`);
  for (const run of last) lines.push(`  ${timeAgo(run.scheduledAt)}: ${run.state} (${run.workflowId})`);
  if (missed > 0)
    lines.push(
      `  ${counted(missed, 'start')} ${missed === 1 ? 'was' : 'were'} missed while Temporal was away`,
    );
  return lines;
}
