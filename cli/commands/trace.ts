import type { TracedKind } from '../../contract/names.ts';
import { formatTime } from '../../contract/times.ts';
import { counted, label } from '../../contract/words.ts';
import { type Trace, traceRecord } from '../../db/read/trace.ts';
import { isPartOf, timelineOf } from '../../operations/timeline.ts';
import { print, printJson } from '../print.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync trace`: prints the history of one record: events, workflows, runs, versions and times. */
export async function trace(
  kind: TracedKind,
  id: string,
  options: { all?: boolean; json?: boolean },
): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const story = await traceRecord(db, kind, id);
    const exists = story.record !== null || story.events.length > 0 || story.rejected.length > 0;
    if (!exists) process.exitCode = 1;
    if (options.json) printJson(story);
    else if (exists) print(...describeTrace(story, options.all ?? false));
    else print(`No ${kind} ${id} is in the warehouse, and no event names it.`);
  });
}

function describeTrace(story: Trace, all: boolean): string[] {
  const { kind, id, record, runs } = story;
  const head = [`${kind} ${id}`];
  if (record === null) head.push('  in no row of the warehouse');
  for (const [name, value] of Object.entries(record ?? {})) {
    if (value !== null) head.push(`  ${label(name)}: ${formatTime(value)}`);
  }
  const listed = all ? runs : runs.filter((run) => isPartOf(run, story));
  const left = runs.length - listed.length;
  return [
    ...head,
    '',
    ...timelineOf({ ...story, runs: listed }).flatMap(({ at, what, more = [] }) => [
      ...paragraph(`${formatTime(at)}  `, what),
      ...more.flatMap((line) => paragraph(' '.repeat(24), line)),
    ]),
    ...(left === 0 ? [] : [`${counted(left, 'run')} read it and changed nothing: --all shows them`]),
  ];
}
