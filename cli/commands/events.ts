import { WarehouseAway } from '../../app/warehouse.ts';
import { type EventOutcome, eventOutcomes, type TracedKind } from '../../contract/names.ts';
import { formatTime, timeAgo } from '../../contract/times.ts';
import { counted, label } from '../../contract/words.ts';
import type { Database } from '../../db/connection/connect.ts';
import {
  type EventDetails,
  type EventFilter,
  type JournalledEvent,
  listEvents,
  placeText,
  readEvent,
  readPlace,
} from '../../db/read/events.ts';
import { type Found, findById, findByName } from '../../db/read/find.ts';
import { type Trace, traceRecord } from '../../db/read/trace.ts';
import { recorded } from '../../operations/recorded.ts';
import { factsOf, isPartOf, timelineOf } from '../../operations/trace.ts';
import { asOperation } from '../command-line.ts';
import { withContext } from '../context.ts';
import { answer, asJson, CommandError, print, printJson, say, UsageError } from '../output.ts';
import { createProgress, paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

interface EventsChosen {
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
    const page = { events, next: next === null ? null : placeText(next) };
    answer(options, page, describeList);
  });
}

/** Says why an event is as it is: its error, and when it is tried again. */
const whyOf = ({ error, outcome, nextAttemptAt }: JournalledEvent): string[] => [
  ...(error === null ? [] : [error]),
  ...(outcome === 'pending' && nextAttemptAt !== null ? [`next attempt ${timeAgo(nextAttemptAt)}`] : []),
];

const outcomeWidth = Math.max(...eventOutcomes.map(({ length }) => length));

function describeList({
  events,
  next,
}: {
  events: readonly JournalledEvent[];
  next: string | null;
}): string[] {
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
    if (event === undefined) throw new CommandError(`no event ${id} is in the journal`);
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
  const { json: _, force, ...chosen } = options;
  if (ids.length === 0 && Object.keys(chosen).length === 0) {
    throw new UsageError(
      'choose events by their ids, or by --outcome, --type, --code, --record, --company or --since',
    );
  }
  await withWarehouse({ temporal: true }, async ({ db, context }) => {
    // Loaded on demand: the other commands of the journal need no Temporal.
    const [{ requireWorker }, { describeReplay, replayEvents, wasReplayed }, { withClient }] =
      await Promise.all([
        import('../../operations/runs.ts'),
        import('../../operations/events.ts'),
        import('../../app/temporal/client.ts'),
      ]);
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
    answer(options, report, describeReplay);
    if (!wasReplayed(report)) process.exitCode = 1;
  });
}

/** `metersync trace`: prints the history of one record: events, workflows, runs, versions and times. */
export async function trace(
  kind: TracedKind,
  id: string,
  options: { all?: boolean; json?: boolean },
): Promise<void> {
  try {
    await traceInWarehouse(kind, id, options);
  } catch (error) {
    if (error instanceof WarehouseAway)
      await traceInTemporal(kind, id, options).catch(({ message }: Error) => say(message));
    throw error;
  }
}

/** Prints what needs no Postgres: the events that Temporal keeps until they can be recorded. */
async function traceInTemporal(kind: TracedKind, id: string, { json }: { json?: boolean }): Promise<void> {
  const need = { postgres: false, temporal: 'if running', service: false } as const;
  await withContext({ ...need, quiet: true, existing: true }, async ({ stack }) => {
    if (!stack.hasTemporal) return;
    const { openEventsOf } = await import('../../operations/events.ts');
    const open = await openEventsOf(stack.temporal, kind, kind === 'meter' ? id : id.toLowerCase());
    if (json) return printJson({ openEvents: open });
    print(
      `${kind} ${id}: ${counted(open.length, 'event')} in Temporal, to be recorded when Postgres answers`,
      ...open.map(
        (event) =>
          `${formatTime(event.receivedAt)}  event ${event.id}: ${event.type}, received; ${event.workflowId}`,
      ),
    );
  });
}

async function traceInWarehouse(
  kind: TracedKind,
  id: string,
  options: { all?: boolean; json?: boolean },
): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const found = await resolve(db, kind, id);
    if (found.length > 1) {
      process.exitCode = 1;
      if (options.json) return printJson({ found });
      return print(
        `${counted(found.length, kind)} match ${id}: choose one by its id`,
        ...found.map((one) => `  ${[one.id, one.name, one.company].filter((part) => part).join('  ')}`),
      );
    }
    const story = await traceRecord(db, kind, found[0]?.id ?? id);
    const exists = story.record !== null || story.events.length > 0 || story.rejected.length > 0;
    if (!exists) process.exitCode = 1;
    if (options.json) printJson(story);
    else if (exists) print(...describeTrace(story, options.all ?? false));
    else print(`No ${kind} ${id} is in the warehouse, and no event names it.`);
  });
}

/** Finds records by their id, or by a name or number that people use, such as the number of an invoice. */
async function resolve(db: Database, kind: TracedKind, given: string): Promise<Found[]> {
  const ofKind = (found: readonly Found[]) => found.filter((one) => one.kind === kind);
  const byId = ofKind(await findById(db, given));
  return byId.length > 0 ? byId : ofKind(await findByName(db, given));
}

function describeTrace(story: Trace, all: boolean): string[] {
  const { kind, id, record, runs } = story;
  const head = [`${kind} ${id}`];
  if (record === null) head.push('  not in the warehouse');
  for (const [name, value] of factsOf(story))
    head.push(`  ${name === 'companyId' ? 'company id' : label(name)}: ${formatTime(value)}`);
  const listed = all ? runs : runs.filter((run) => isPartOf(run, story));
  const left = runs.length - listed.length;
  return [
    ...head,
    '',
    ...timelineOf({ ...story, runs: listed }).flatMap(({ at, what, more = [] }) => [
      ...paragraph(`${formatTime(at)}  `, what),
      ...more.flatMap((line) => paragraph(' '.repeat(24), line)),
    ]),
    ...(left === 0 ? [] : [`${counted(left, 'run')} that read it and changed nothing: --all shows them`]),
  ];
}
