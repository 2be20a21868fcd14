import { type Trace, traceRecord } from '../../app/events.ts';
import type { TracedKind } from '../../contract/names.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync trace`: the story of one record: events, workflows, runs, versions and times. */
export async function trace(kind: TracedKind, id: string, options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const story = await traceRecord(db, kind, id);
    const known = story.record !== null || story.events.length > 0 || story.rejected.length > 0;
    if (!known) process.exitCode = 1;
    if (options.json) printJson(story);
    else if (known) print(...describeTrace(story));
    else print(`No ${kind} ${id} is known, and no event told of one.`);
  });
}

function describeTrace({ kind, id, record, ...story }: Trace): string[] {
  const head = [`${kind} ${id}`];
  if (record === null) head.push('  in no row of the warehouse');
  for (const [name, value] of Object.entries(record ?? {})) {
    if (value !== null) head.push(`  ${name}: ${value}`);
  }
  return [...head, '', ...timeline({ ...story, record })];
}

/** What happened, in order of time. */
function timeline({ record, events, runs, rejected, deletes }: Omit<Trace, 'kind' | 'id'>): string[] {
  const moments: { at: string; what: string }[] = [];
  const note = (at: string | null | undefined, what: string) => {
    if (at) moments.push({ at, what });
  };
  for (const event of events) {
    note(event.receivedAt, `event ${event.id}: ${event.type}, received`);
    note(event.recordedAt, `event ${event.id}: recorded by ${event.workflowId ?? 'a workflow'}${run(event)}`);
    note(event.appliedAt, `event ${event.id}: ${event.outcome}`);
    if (event.appliedAt === null) {
      const why = event.error === null ? '' : `: ${event.error}`;
      note(event.recordedAt, `event ${event.id}: ${event.outcome}${why}`);
    }
  }
  for (const one of runs) {
    note(
      one.startedAt,
      `run ${one.runId}: ${one.resource}, ${one.kind}, began (${one.workflowId ?? 'a workflow'})`,
    );
    note(
      one.finishedAt,
      `run ${one.runId}: ${one.resource} ${one.state}${one.error === null ? '' : `: ${one.error}`}`,
    );
  }
  for (const one of rejected) note(one.rejectedAt, `refused by Postgres: ${one.error}`);
  for (const one of deletes) {
    note(
      one.notedAt,
      `run ${one.runId}: ${one.reason === 'listed' ? 'listed as deleted' : 'absent'} since ${one.absentSince}, ${one.state}`,
    );
    note(one.decidedAt, `run ${one.runId}: ${one.state}`);
  }
  note(record?.firstSyncedAt, 'first written');
  note(record?.syncedAt, `read from the service (${record?.apiVersion ?? 'unknown version'})`);
  note(record?.deletedAt, `tombstoned: ${record?.deletedReason}`);
  // Postgres prints one session's times alike but for trailing zeros of the fraction.
  const key = (at: string) => at.replace(/[+-]\d\d(:\d\d)?$/, '').padEnd(26, '0');
  const order = moments.map((moment, place) => ({ ...moment, place, key: key(moment.at) }));
  order.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.place - b.place));
  return order.map(({ at, what }) => `${at}  ${what}`);
}

const run = ({ workflowRunId }: { workflowRunId: string | null }): string =>
  workflowRunId === null ? '' : ` (run ${workflowRunId})`;
