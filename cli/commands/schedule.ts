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
      if (action !== 'show')
        await noted(context, action, name ?? 'full', options, (kind) =>
          action === 'pause'
            ? pauseSchedule(client, kind, options.reason ?? 'paused with metersync schedule pause')
            : resumeSchedule(client, kind),
        );
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

async function noted(
  { settings, stack, log }: Context,
  action: Exclude<ScheduleAction, 'show'>,
  name: RunKind,
  { reason }: ScheduleOptions,
  work: (name: RunKind) => Promise<void>,
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
      () => work(name),
      () => 'done',
      sayUnnoted,
    );
  } finally {
    await warehouse.close();
  }
}

const states: Readonly<Record<ScheduleState['state'], string>> = {
  active: '',
  paused: 'paused until metersync schedule resume',
  absent: 'not there: a worker makes it when it starts, unless its setting is none',
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
