import { formatTime } from '../contract/times.ts';
import { nameInWords } from '../contract/words.ts';
import type { Trace } from '../db/read/trace.ts';
import { deletionState } from './decisions.ts';

/** Whether a run made, changed or deleted the record, or did not end complete. */
export function isPartOf(
  { runId, state, startedAt, finishedAt }: Trace['runs'][number],
  story: Trace,
): boolean {
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
  readonly more?: readonly string[];
}

/** Lists what happened, in order of time. Operations on runs that are left out are left out, too. */
export function timelineOf(story: Omit<Trace, 'kind' | 'subject'>): Moment[] {
  const moments = [
    ...eventMoments(story),
    ...story.changes.map(
      ({ at, byKind, by, fields }): Moment => ({
        at,
        what: `changed${byKind === null ? '' : ` by ${byKind} ${by}`}`,
        more: fields.map(describeField),
      }),
    ),
    ...runMoments(story),
    ...operationMoments(story),
    ...recordMoments(story),
  ];
  return moments.toSorted((a, b) => (order(a.at) < order(b.at) ? -1 : order(a.at) > order(b.at) ? 1 : 0));
}

/** Turns a time into text that sorts as times do: in UTC, with all six digits of its fraction. */
function order(at: string): string {
  const [fraction = '.'] = /\.\d+/.exec(at) ?? [];
  return `${formatTime(at).slice(0, -1)}${fraction.padEnd(7, '0')}`;
}

/** Describes a changed field. If the shortened values are equal, it only says that the field changed. */
function describeField({ field, before, after }: Trace['changes'][number]['fields'][number]): string {
  const [was, is] = [cut(before), cut(after)];
  return was === is ? `${field}: changed` : `${field}: ${was} → ${is}`;
}

const because = (error: string | null): string => (error === null ? '' : `: ${error}`);
const cut = (value: string | null): string =>
  value === null ? 'none' : value.length > 60 ? `${value.slice(0, 60)}…` : value;

const eventMoments = ({ events }: Pick<Trace, 'events'>): Moment[] =>
  events.flatMap(({ id, type, outcome, receivedAt, recordedAt, settledAt, ...event }): Moment[] => {
    const by = event.workflowRunId === null ? '' : ` (run ${event.workflowRunId})`;
    return [
      { at: receivedAt, what: `event ${id}: ${type}, received` },
      { at: recordedAt, what: `event ${id}: recorded by ${event.workflowId ?? 'a workflow'}${by}` },
      { at: settledAt ?? recordedAt, what: `event ${id}: ${outcome}${because(event.error)}` },
    ];
  });

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

function operationMoments({
  id,
  events,
  runs,
  changes,
  deletes,
  operations,
}: Omit<Trace, 'kind' | 'subject'>): Moment[] {
  const shown = new Set<string | null>([
    id,
    ...events.map((event) => event.id),
    ...[...runs, ...deletes].map(({ runId }) => runId),
    ...changes.map(({ by }) => by),
  ]);
  return (
    operations
      // An audit changes nothing.
      .filter(
        ({ action, about }) =>
          action !== 'audit' && (about.length === 0 || about.some((name) => shown.has(name))),
      )
      .map(({ at, actor, source, action, outcome, detail }) => ({
        at,
        what: `${action} by ${actor} (${source}): ${outcome ?? 'not ended'}${because(detail)}`,
      }))
  );
}

const decided: Readonly<Record<string, string>> = { applied: 'approved' };

/** The facts of a row that are useful to people, by name. */
export const factsOf = ({ subject, record }: Pick<Trace, 'subject' | 'record'>): [string, string][] =>
  Object.entries({
    ...subject,
    ...(record && {
      companyId: record.companyId,
      updated: record.updated,
      firstWritten: record.firstSyncedAt,
      lastRead: record.syncedAt,
      deletedAt: record.deletedAt,
      deletedReason: record.deletedReason,
    }),
  }).flatMap(([name, value]) => (value === null ? [] : [[name, value] as [string, string]]));

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
    const gone = reason === 'listed' ? 'listed as deleted' : 'not listed';
    const then = deletionState(decidedAt === null ? state : 'quarantined');
    note(notedAt, `run ${runId}: ${gone} since ${formatTime(absentSince)}, deletion ${then}`);
    note(decidedAt, `run ${runId}: its deletion was ${decided[state] ?? state}`);
  }
  note(record?.firstSyncedAt, 'first written');
  note(record?.syncedAt, `read from the service (${record?.apiVersion ?? 'unknown version'})`);
  note(record?.deletedAt, `tombstoned: ${record?.deletedReason}`);
  return moments;
}
