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
import { openWarehouse } from '../../app/warehouse.ts';
import { type RunKind, runKinds } from '../../contract/names.ts';
import { formatTime, timeAgo } from '../../contract/times.ts';
import { counted } from '../../contract/words.ts';
import { recordedWherePossible } from '../../operations/recorded.ts';
import { asOperation, sayUnnoted } from '../as-operation.ts';
import { type Context, openContext } from '../context.ts';
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
  const changes = action !== 'show';
  const context = await openContext({
    // Changes are noted in the warehouse's log of operations, if the warehouse is there.
    postgres: changes,
    temporal: true,
    service: false,
    quiet: true,
    existing: true,
  });
  try {
    const { client, close } = await connectClient(context.stack.temporal);
    try {
      if (changes)
        await noted(context, action, name ?? 'full', options, (kind) => act(client, action, kind, options));
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

async function noted(
  { settings, stack, log }: Context,
  action: Exclude<ScheduleAction, 'show'>,
  name: RunKind,
  { json: _, ...options }: ScheduleOptions,
  work: (name: RunKind) => Promise<void>,
): Promise<void> {
  const given = Object.entries(options).map(([key, value]) => [key, String(value)]);
  const operation = asOperation(settings, `schedule ${action}`, {
    schedule: name,
    ...Object.fromEntries(given),
  });
  const warehouse = openWarehouse(settings, stack.databaseUrl, log, 1);
  try {
    await recordedWherePossible(
      warehouse.db,
      operation,
      () => work(name),
      () => 'done',
      sayUnnoted,
    );
  } finally {
    await warehouse.close();
  }
}

type Client = Parameters<typeof readSchedule>[0];

async function act(
  client: Client,
  action: Exclude<ScheduleAction, 'show'>,
  name: RunKind,
  options: ScheduleOptions,
): Promise<void> {
  const { cron, every: everyMs, timeZone, jitter: jitterMs, catchUp: catchUpMs } = options;
  const actions: Readonly<Record<typeof action, () => Promise<void>>> = {
    set: () => setSchedule(client, name, { cron, everyMs, timeZone, jitterMs, catchUpMs }),
    reset: () => resetSchedule(client, name),
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
  paused: 'paused until metersync schedule resume',
  removed: 'removed: workers do not make it again; metersync schedule reset does',
  absent: 'not there: a worker makes it when it starts, or metersync schedule reset',
};

/** Describes a schedule in lines for people. */
function describeSchedule(now: ScheduleState): string[] {
  const { name, state, reason, times, next, last, running, missed } = now;
  const window = `jitter ${shortDuration(now.jitterSeconds * 1000)}, catches up ${shortDuration(now.catchUpSeconds * 1000)}`;
  const heading = [states[state], reason, times === null ? '' : `${times}, ${window}`];
  const lines = [`${name}: ${heading.filter((part) => part !== '' && part !== null).join('; ')}`];
  const [first, ...then] = next;
  if (first !== undefined)
    lines.push(`  next: ${[timeAgo(first), ...then.slice(0, 2).map(formatTime)].join(', ')}`);
  if (running.length > 0) lines.push(`  running: ${running.join(', ')}`);
  for (const run of last) lines.push(`  ${timeAgo(run.scheduledAt)}: ${run.state} (${run.workflowId})`);
  if (missed > 0)
    lines.push(
      `  ${counted(missed, 'start')} ${missed === 1 ? 'was' : 'were'} missed while Temporal was away`,
    );
  return lines;
}
