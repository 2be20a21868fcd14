import type { TracedKind } from '../../contract/names.ts';
import { shownTime } from '../../contract/times.ts';
import { counted, label, nameInWords } from '../../contract/words.ts';
import { type Trace, traceRecord } from '../../db/read/trace.ts';
import { print, printJson } from '../print.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync trace`: prints the story of one record: events, workflows, runs, versions and times. */
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
    else print(`No ${kind} ${id} is known, and no event told of one.`);
  });
}

function describeTrace(story: Trace, all: boolean): string[] {
  const { kind, id, record, runs } = story;
  const head = [`${kind} ${id}`];
  if (record === null) head.push('  in no row of the warehouse');
  for (const [name, value] of Object.entries(record ?? {})) {
    if (value !== null) head.push(`  ${label(name)}: ${shownTime(value)}`);
  }
  const listed = all ? runs : runs.filter((run) => isPartOf(run, story));
  const left = runs.length - listed.length;
  return [
    ...head,
    '',
    ...timeline({ ...story, runs: listed }),
    ...(left === 0 ? [] : [`${counted(left, 'run')} read it and changed nothing: --all shows them`]),
  ];
}

/** Whether a run made, changed or deleted the record, or did not end complete. */
function isPartOf({ runId, state, startedAt, finishedAt }: Trace['runs'][number], story: Trace): boolean {
  if (state !== 'complete') return true;
  if (story.changes.some(({ by }) => by === runId)) return true;
  if (story.deletes.some((deleted) => deleted.runId === runId)) return true;
  const first = story.record?.firstSyncedAt;
  return first !== undefined && isBetween(first, startedAt, finishedAt);
}

const isBetween = (at: string, from: string, until: string | null): boolean =>
  order(from) <= order(at) && (until === null || order(at) <= order(until));

interface Moment {
  readonly at: string;
  readonly what: string;
  /** Details, a line each. */
  readonly more?: readonly string[];
}

/** Lists what happened, in order of time. */
function timeline(story: Omit<Trace, 'kind' | 'id'>): string[] {
  const moments = [
    ...eventMoments(story),
    ...story.applications.map(
      ({ settledAt, outcome, error }): Moment => ({
        at: settledAt,
        what: `read again: what events told of is ${outcome}${because(error)}`,
      }),
    ),
    ...story.changes.map(
      ({ at, byKind, by, fields }): Moment => ({
        at,
        what: `changed${byKind === null ? '' : ` by ${byKind} ${by}`}`,
        more: fields.map(describeField),
      }),
    ),
    ...runMoments(story),
    ...recordMoments(story),
  ];
  return moments
    .toSorted((a, b) => (order(a.at) < order(b.at) ? -1 : order(a.at) > order(b.at) ? 1 : 0))
    .flatMap(({ at, what, more = [] }) => [
      ...paragraph(`${shownTime(at)}  `, what),
      ...more.flatMap((line) => paragraph(' '.repeat(24), line)),
    ]);
}

/**
 * Turns a time into text that sorts as times do: one session prints them alike, except for trailing zeros.
 */
const order = (at: string): string => at.replace(/[+-]\d\d(:\d\d)?$/, '').padEnd(26, '0');

/** Describes a changed field; where the shortened values are equal, it says only that the field changed. */
function describeField({ field, before, after }: Trace['changes'][number]['fields'][number]): string {
  const [was, is] = [cut(before), cut(after)];
  return was === is ? `${field}: changed` : `${field}: ${was} → ${is}`;
}

const because = (error: string | null): string => (error === null ? '' : `: ${error}`);
const cut = (value: string | null): string =>
  value === null ? 'absent' : value.length > 60 ? `${value.slice(0, 60)}…` : value;

function eventMoments({ events, applications }: Pick<Trace, 'events' | 'applications'>): Moment[] {
  const settled = new Set(applications.map(({ settledAt }) => settledAt));
  return events.flatMap(({ id, type, outcome, receivedAt, recordedAt, appliedAt, ...event }): Moment[] => {
    const by = event.workflowRunId === null ? '' : ` (run ${event.workflowRunId})`;
    const settling = { at: appliedAt ?? recordedAt, what: `event ${id}: ${outcome}${because(event.error)}` };
    return [
      { at: receivedAt, what: `event ${id}: ${type}, received` },
      { at: recordedAt, what: `event ${id}: recorded by ${event.workflowId ?? 'a workflow'}${by}` },
      // An event that a read settled is listed with that read.
      ...(appliedAt !== null && settled.has(appliedAt) ? [] : [settling]),
    ];
  });
}

function runMoments({ runs }: Pick<Trace, 'runs'>): Moment[] {
  return runs.flatMap(
    ({ runId, resource, kind, state, startedAt, finishedAt, error, workflowId }): Moment[] => [
      {
        at: startedAt,
        what: `run ${runId}: ${nameInWords(resource)}, ${kind}, began (${workflowId ?? 'a workflow'})`,
      },
      ...(finishedAt === null
        ? []
        : [{ at: finishedAt, what: `run ${runId}: ${nameInWords(resource)} ${state}${because(error)}` }]),
    ],
  );
}

function recordMoments({
  record,
  rejected,
  deletes,
}: Pick<Trace, 'record' | 'rejected' | 'deletes'>): Moment[] {
  const moments: Moment[] = rejected.map(({ rejectedAt, error }) => ({
    at: rejectedAt,
    what: `refused by Postgres: ${error}`,
  }));
  const note = (at: string | null | undefined, what: string) => {
    if (at) moments.push({ at, what });
  };
  for (const { runId, reason, absentSince, state, notedAt, decidedAt } of deletes) {
    const gone = reason === 'listed' ? 'listed as deleted' : 'absent';
    note(notedAt, `run ${runId}: ${gone} since ${shownTime(absentSince)}, ${state}`);
    note(decidedAt, `run ${runId}: ${state}`);
  }
  note(record?.firstSyncedAt, 'first written');
  note(record?.syncedAt, `read from the service (${record?.apiVersion ?? 'unknown version'})`);
  note(record?.deletedAt, `tombstoned: ${record?.deletedReason}`);
  return moments;
}
