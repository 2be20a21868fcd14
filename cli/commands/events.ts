import { type EventOutcome, eventOutcomes } from '../../contract/names.ts';
import { formatTime, timeAgo } from '../../contract/times.ts';
import { counted, label } from '../../contract/words.ts';
import type { EventFilter } from '../../db/read/event-filter.ts';
import { placeText, readPlace } from '../../db/read/event-place.ts';
import { type EventDetails, type JournalledEvent, listEvents, readEvent } from '../../db/read/events.ts';
import { recorded } from '../../operations/recorded.ts';
import { describeReplay, replayEvents, wasReplayed } from '../../operations/replay.ts';
import { asOperation } from '../as-operation.ts';
import { CommandError, UsageError } from '../errors.ts';
import { asJson, print, printJson } from '../print.ts';
import { createProgress, paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface EventsChosen {
  readonly type?: string;
  readonly outcome?: EventOutcome;
  readonly record?: string;
  readonly company?: string;
  readonly code?: string;
  readonly since?: string;
  readonly until?: string;
  readonly json?: boolean;
}

const filterOf = (chosen: EventsChosen): EventFilter => ({
  type: chosen.type,
  outcome: chosen.outcome,
  recordId: chosen.record,
  companyId: chosen.company,
  code: chosen.code,
  since: chosen.since,
  until: chosen.until,
});

/** `metersync events list`: prints a page of the journal. */
export async function eventsList(options: EventsChosen & { limit: number; before?: string }): Promise<void> {
  const { limit, before } = options;
  const after = before === undefined ? undefined : readPlace(before);
  if (before !== undefined && after === undefined)
    throw new UsageError('--before has to be the value that the previous page printed');
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const { events, next } = await listEvents(db, filterOf(options), { limit, after });
    const more = next === null ? null : placeText(next);
    if (options.json) printJson({ events, next: more });
    else print(...describeList(events, more));
  });
}

const unknownEvent = (id: string) => new CommandError(`no event ${id} is in the journal`);

/** Says why an event is as it is: its error, and when it is tried again. */
const whyOf = ({ error, outcome, nextAttemptAt }: JournalledEvent): string[] => [
  ...(error === null ? [] : [error]),
  ...(outcome === 'pending' && nextAttemptAt !== null ? [`next attempt ${timeAgo(nextAttemptAt)}`] : []),
];

const outcomeWidth = Math.max(...eventOutcomes.map(({ length }) => length));

function describeList(events: readonly JournalledEvent[], next: string | null): string[] {
  if (events.length === 0) {
    return [
      next === null
        ? 'No event matches.'
        : `No event matches so far. To search earlier events: --before ${next}`,
    ];
  }
  const lines = events.flatMap((event) => {
    const { id, type, outcome, recordId, receivedAt } = event;
    const what = [type, id, ...(recordId === null ? [] : [`record ${recordId}`])].join(', ');
    return paragraph(
      `${formatTime(receivedAt)}  ${outcome.padEnd(outcomeWidth)}  `,
      [what, ...whyOf(event)].join('; '),
    );
  });
  if (next !== null) lines.push(`More: --before ${next}`);
  return lines;
}

/** `metersync events show`: prints everything about one event, with its signed body. */
export async function eventsShow(id: string, options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const event = await readEvent(db, id);
    if (event === undefined) throw unknownEvent(id);
    if (options.json) print(detailsAsJson(event));
    else print(...describeEvent(event));
  });
}

/** Writes an event as JSON. The payload stays as Postgres prints it: no number passes through a float. */
function detailsAsJson({ payload, body, ...event }: EventDetails): string {
  const columns = asJson({ ...event, body: body?.toString('utf8') ?? null });
  const oneLine = payload?.replaceAll(/\n\s*/g, '') ?? 'null';
  return `${columns.slice(0, -1)},"payload":${oneLine}}`;
}

function describeEvent({ payload, body, ...event }: EventDetails): string[] {
  const lines = Object.entries(event)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name === 'id' ? 'event' : label(name)}: ${formatValue(value)}`);
  if (body !== null) lines.push('body, as signed:', body.toString('utf8'));
  else if (payload !== null) lines.push('payload:', ...payload.split('\n'));
  else lines.push('payload: dropped because of its age (RETENTION_DAYS)');
  return lines;
}

const formatValue = (value: unknown): string => {
  const text = String(value);
  return formatTime(text) === text ? text : timeAgo(text);
};

/** Maximum number of ids, and of lines of the result, that the log of operations keeps. */
const idsNoted = 20;

/** `metersync events replay`: applies kept events again with the current code. */
export async function eventsReplay(
  ids: readonly string[],
  options: EventsChosen & { force?: boolean },
): Promise<void> {
  const { json, force, ...chosen } = options;
  if (ids.length === 0 && Object.keys(chosen).length === 0) {
    throw new UsageError(
      'choose events by their ids, or by --outcome, --type, --code, --record, --company or --since',
    );
  }
  await withWarehouse({ temporal: true }, async ({ db, context }) => {
    // Loaded on demand: the other commands of the journal need no Temporal.
    const { requireWorker } = await import('../../operations/require-worker.ts');
    const { withClient } = await import('../../app/temporal/temporal.ts');
    const progress = await createProgress();
    const report = await withClient(context.stack.temporal, (client) =>
      recorded(
        db,
        asOperation(context.settings, 'replay', {
          ...chosen,
          ...(ids.length === 0 ? {} : { events: ids.slice(0, idsNoted).join(' ') }),
          ...(force ? { force: 'yes' } : {}),
        }),
        async (operation) => {
          await requireWorker(client, 'events');
          return await replayEvents({
            client,
            db,
            filter: { ...filterOf(chosen), ...(ids.length === 0 ? {} : { ids }) },
            replay: force ? 'all' : 'unapplied',
            operation,
            onProgress: (replayed) => progress.show([`${counted(replayed, 'event')} replayed`]),
          });
        },
        (done) => describeReplay(done).slice(0, idsNoted).join('; '),
        wasReplayed,
      ),
    );
    progress.done();
    if (json) printJson(report);
    else print(...describeReplay(report));
    if (!wasReplayed(report)) process.exitCode = 1;
  });
}
