import { WarehouseAway } from '../../app/warehouse/absence.ts';
import type { TracedKind } from '../../contract/names.ts';
import { formatTime } from '../../contract/times.ts';
import { counted, label } from '../../contract/words.ts';
import type { Database } from '../../db/connection/connect.ts';
import { type Found, findById, findByName } from '../../db/read/find.ts';
import { type Trace, traceRecord } from '../../db/read/trace.ts';
import { openEventsOf } from '../../operations/open-events.ts';
import { factsOf, isPartOf, timelineOf } from '../../operations/timeline.ts';
import { withContext } from '../context.ts';
import { print, printJson, say } from '../print.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

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
  const need = {
    postgres: false,
    temporal: 'if running',
    service: false,
    quiet: true,
    existing: true,
  } as const;
  await withContext(need, async ({ stack }) => {
    if (!stack.hasTemporal) return;
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
