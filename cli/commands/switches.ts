import { webhooksOf } from '../../app/service.ts';
import { withClient } from '../../app/temporal/client.ts';
import { shortDuration } from '../../app/temporal/schedule-times.ts';
import {
  pauseSchedule,
  readSchedule,
  resumeSchedule,
  type ScheduleState,
} from '../../app/temporal/schedules.ts';
import { type RunKind, runKinds } from '../../contract/names.ts';
import { formatTime, timeAgo } from '../../contract/times.ts';
import { counted } from '../../contract/words.ts';
import { pausedInWords } from '../../health/run-findings.ts';
import { asOperation } from '../command-line.ts';
import { type Context, withContext } from '../context.ts';
import { answer, CommandError, say, UsageError } from '../output.ts';
import { notedWherePossible } from '../warehouse.ts';

export type ScheduleAction = 'show' | 'pause' | 'resume';

interface ScheduleOptions {
  reason?: string;
  json?: boolean;
}

/** `metersync schedule`: shows or pauses runs that start by themselves, and prints the schedule. */
export async function schedule(
  action: ScheduleAction,
  name: RunKind | undefined,
  options: ScheduleOptions,
): Promise<void> {
  // Changes are noted in the warehouse's log of operations, if the warehouse is there.
  const need = { postgres: action !== 'show', temporal: true, service: false, quiet: true, existing: true };
  await withContext(need, (context) =>
    withClient(context.stack.temporal, async (client) => {
      if (action !== 'show' && name !== undefined) {
        const { reason } = options;
        const target = { schedule: name, reason };
        const operation = asOperation(context.settings, `schedule ${action}`, target);
        const by = operation.actor;
        const change = () =>
          action === 'pause'
            ? pauseSchedule(client, name, { by, reason, at: new Date() })
            : resumeSchedule(client, name);
        await notedWherePossible(context, operation, change, () => 'done');
      }
      const names = name === undefined ? runKinds : [name];
      const schedules = await Promise.all(names.map((kind) => readSchedule(client, kind)));
      answer(options, { schedules }, () => schedules.flatMap(describeSchedule));
    }),
  );
}

function stateOf({ name, state, reason }: ScheduleState): string[] {
  if (state === 'active') return [];
  if (state === 'absent')
    return ['does not exist: a worker creates it when it starts, unless its setting is none'];
  return [pausedInWords(reason), `resume with metersync schedule resume ${name}`];
}

/** Formats a time in the zone of a schedule, such as `0 3 * * * (Europe/Berlin)`; empty for UTC. */
function localTime(at: string, times: string | null): string {
  const [, timeZone = 'UTC'] = /\((\S+)\)$/.exec(times ?? '') ?? [];
  if (timeZone === 'UTC') return '';
  const clock = new Date(at).toLocaleTimeString('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' });
  return `, ${clock} in ${timeZone}`;
}

function describeSchedule(now: ScheduleState): string[] {
  const { name, times, next, last, running, missed } = now;
  const window = `jitter ${shortDuration(now.jitterSeconds * 1000)}, makes up for missed starts of the last ${shortDuration(now.catchUpSeconds * 1000)}`;
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

export type WebhooksAction = 'enable' | 'disable' | 'portal';

/** `metersync webhooks`: switches the service's events and opens its portal, with the user's API key. */
export async function webhooks(
  action: WebhooksAction,
  options: { json?: boolean; yes?: boolean },
): Promise<void> {
  if (action === 'disable' && !options.yes)
    throw new UsageError('This turns events off for every endpoint of the organization: confirm with --yes');
  const changes = action === 'enable' || action === 'disable';
  await withContext(
    {
      // Changes are noted in the warehouse's log of operations, if there is one. There may be none yet,
      // because webhooks are enabled before the warehouse is made.
      postgres: changes ? 'if there' : false,
      temporal: false,
      // No sandbox is started for the portal, because the portal would end with this command.
      service: action === 'portal' ? 'if known' : true,
      quiet: true,
      existing: true,
    },
    async (context) => {
      const work = () => act(context, action);
      const result =
        changes && context.stack.databaseUrl !== ''
          ? await notedWherePossible(
              context,
              asOperation(context.settings, `webhooks ${action}`, {}),
              work,
              describe,
            )
          : await work();
      answer(options, result, () => [describe(result)]);
      if ('portal' in result && !options.json) say('(valid for 7 days)');
    },
  );
}

type Result = { readonly enabled: boolean } | { readonly portal: string };

async function act(context: Context, action: WebhooksAction): Promise<Result> {
  if (context.service.url === '')
    throw new CommandError(
      'no sandbox is running, so there is no portal: run metersync start first, or set SERVICE_URL',
    );
  const configuration = webhooksOf(context.service, context.settings);
  if (action === 'enable' || action === 'disable') {
    return { enabled: await configuration.enable(action === 'enable') };
  }
  if (!(await configuration.enabled())) {
    throw new CommandError(
      'the portal is not available while webhooks are disabled: run metersync webhooks enable first',
    );
  }
  return { portal: await configuration.portal() };
}

function describe(result: Result): string {
  if ('portal' in result) return result.portal;
  return result.enabled
    ? 'Webhooks are enabled: the service sends events.'
    : 'Webhooks are disabled: the service sends no events (metersync webhooks enable).';
}
