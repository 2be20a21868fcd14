import { type RunKind, runKinds } from '../contract/names.ts';
import { alarmPolicy } from '../contract/retry-policy.ts';
import { formatSeconds, formatTime } from '../contract/times.ts';
import { counted, countedRows, countedToMax, wordOfRun } from '../contract/words.ts';
import { type AlarmType, type Found, foundIf, inTemporal, inWarehouse } from './finding-type.ts';
import type { DifferingAudit, KindOfRuns, LastRun, Undecided } from './measured.ts';

const settingOf: Readonly<Record<RunKind, string>> = {
  full: 'BACKFILL_CRON',
  reconcile: 'RECONCILE_EVERY',
};

/** Says that a schedule is paused. A note of metersync says who paused it; for others, Temporal's note is quoted. */
export const pausedInWords = (note: string | null): string =>
  note?.startsWith('paused by ') ? note : `paused${note === null ? '' : `: ${note}`}`;

/** Judges the runs of each kind. */
const ofRuns = (judge: (runs: KindOfRuns, kind: RunKind) => readonly Found[]) =>
  inWarehouse(({ runs }) => runKinds.flatMap((kind) => judge(runs[kind], kind)));

/** Findings about backfills and reconciles, and about rows that wait for a decision. */
export const runFindings = {
  NotLoaded: {
    name: 'first backfill',
    severity: 'ticket',
    means: 'No backfill of all companies has ended.',
    judge: inWarehouse(({ loaded, runs }) =>
      foundIf(!loaded && runs.full.running === 0, { saw: 'no backfill of all companies has ended yet' }),
    ),
    forMinutes: 1_440,
    todo: 'Run `metersync backfill all`.',
  },
  RunUnwell: {
    name: 'last run',
    severity: 'ticket',
    means: 'The last run of a kind did not read everything.',
    // If only a decision on deletions is lacking, the finding is Decide.
    judge: ofRuns(({ last }, kind) =>
      last === null || last.state === 'complete' || last.awaitsDecision ? [] : [describeUnwell(kind, last)],
    ),
    forMinutes: 0,
    todo: 'If the run is partial or failed, fix the cause, then run `metersync backfill all`, or `metersync resume` for what failed. If it is suspect, the listing changed during the run, showed an older state or was empty: run it again when the service is quiet.',
  },
  AuditDiffers: {
    name: 'last audit',
    severity: 'ticket',
    means: 'The last audit found differences, and nothing newer shows that they are gone.',
    judge: inWarehouse(({ audit, runs: { full } }) =>
      audit === null ? [] : [describeDiffering(audit, full)],
    ),
    forMinutes: 60,
    todo: 'Run `metersync audit` again. If differences remain, run `metersync audit --repair`, or `metersync backfill all`.',
  },
  RunOverdue: {
    name: 'next run',
    severity: 'ticket',
    means: 'No backfill or no reconcile has completed for one and a half intervals of its schedule.',
    judge: ({ warehouse, temporal }) => {
      if ('away' in warehouse || 'away' in temporal) return undefined;
      return temporal.schedules.flatMap(({ name: kind, intervalSeconds }) => {
        const seconds = warehouse.runs[kind].lastCompleteSecondsAgo;
        if (seconds === null || intervalSeconds === null) return [];
        return foundIf(seconds > alarmPolicy.runOverdueIntervals * intervalSeconds, {
          name: `next ${wordOfRun[kind]}`,
          brief: `the next ${wordOfRun[kind]} is overdue`,
          labels: { kind },
          saw: `overdue: the last complete ${wordOfRun[kind]} ended ${formatSeconds(seconds)} ago`,
          todo: 'See RunOverdue in docs/runbooks.md; metersync backfill all reads everything now.',
        });
      });
    },
    forMinutes: 10,
    todo: 'Fix the cause. `metersync backfill all` reads everything now; `metersync reconcile` starts a reconcile now.',
  },
  RunStalled: {
    name: 'run under way',
    severity: 'ticket',
    means: 'A run has stored nothing for half an hour.',
    judge: ofRuns(({ underWay }, kind) =>
      underWay === null || underWay.progressSecondsAgo <= alarmPolicy.runStalledSeconds
        ? []
        : [
            {
              name: `${wordOfRun[kind]} under way`,
              brief: `a ${wordOfRun[kind]} is stuck`,
              labels: { kind },
              saw: `run ${underWay.runId} stored its last page ${formatSeconds(underWay.progressSecondsAgo)} ago`,
              todo: `See what it reads (metersync backfill --run ${underWay.runId}), and RunStalled in docs/runbooks.md.`,
            },
          ],
    ),
    forMinutes: 0,
    todo: 'Fix the cause. The run then continues from its cursor.',
  },
  SchedulePaused: {
    name: 'schedule',
    severity: 'ticket',
    means: 'A schedule has been paused for a day.',
    judge: inTemporal(({ schedules }) =>
      schedules
        .filter(({ state }) => state === 'paused')
        .map(({ name, reason }) => ({
          name: `schedule ${name}`,
          brief: `the schedule ${name} is paused`,
          labels: { schedule: name },
          saw: pausedInWords(reason),
          todo: `Run metersync schedule resume ${name}. If it should not run any more, set ${settingOf[name]} to none.`,
        })),
    ),
    forMinutes: 1_440,
    todo: 'Run `metersync schedule resume` with its name. If it should not run any more, set `BACKFILL_CRON` or `RECONCILE_EVERY` to `none`.',
  },
  ScheduleGone: {
    name: 'schedule',
    severity: 'ticket',
    means: 'A schedule that the settings ask for does not exist.',
    // If no worker takes backfills, the lack of a worker is the cause, which has a finding of its own.
    judge: inTemporal(({ schedules, idle }) =>
      idle.includes('backfill')
        ? []
        : schedules
            .filter(({ state, isWanted }) => state === 'absent' && isWanted)
            .map(({ name }) => ({
              name: `schedule ${name}`,
              brief: `the schedule ${name} is gone`,
              labels: { schedule: name },
              saw: `the schedule does not exist, although ${settingOf[name]} asks for it: somebody removed it`,
              todo: `Restart a worker, which creates it again. If it should not run any more, set ${settingOf[name]} to none for workers and commands.`,
            })),
    ),
    forMinutes: 15,
    todo: 'Restart a worker, which creates it again. If it should not run any more, set `BACKFILL_CRON` or `RECONCILE_EVERY` to `none`.',
  },
  Decide: {
    name: 'deletes',
    severity: 'ticket',
    means: 'Deletions of records or readings wait for a decision.',
    judge: inWarehouse(({ undecidedDeletes: deletes, undecided }) =>
      foundIf(deletes > 0, {
        saw: `${whatIsUndecided(deletes, undecided)} disappeared from the service in one run. They are kept until you approve or reject the deletions`,
        brief: `${countedToMax(deletes, 'deletion')} to decide`,
        counts: { deletes },
      }),
    ),
    forMinutes: 60,
    todo: 'See `metersync deletes list`; then run `metersync deletes approve` or `reject`. Rows whose absence a later read or event explains leave the list by themselves.',
  },
  RecordsRefused: {
    name: 'refused records',
    severity: 'ticket',
    means: 'Postgres refuses records of the service.',
    judge: inWarehouse(({ rejectedRecords: records }) =>
      foundIf(records > 0, {
        saw: `Postgres refuses ${countedToMax(records, 'record')}`,
        brief: `Postgres refuses ${countedToMax(records, 'record')}`,
        counts: { records },
      }),
    ),
    forMinutes: 60,
    todo: 'The table `metersync.rejected_records` has the reason for each record. Ask the operator of the service to correct them.',
  },
} as const satisfies Readonly<Record<string, AlarmType>>;

/** Names what waits for a decision: `70 bills of 1 company (526,839.17 USD; the service lists all as deleted)`. */
function whatIsUndecided(deletes: number, undecided: Undecided | null): string {
  if (undecided === null) return countedToMax(deletes, 'row');
  const { byResource, companies, listedAsDeleted, cost } = undecided;
  const what = new Intl.ListFormat('en').format(
    byResource.map(({ rows, resource }) => countedRows(rows, resource)),
  );
  const of = companies === 0 ? '' : ` of ${countedToMax(companies, 'company', 'companies')}`;
  const more = [
    ...cost,
    ...(listedAsDeleted === 0
      ? []
      : [
          `the service lists ${listedAsDeleted === deletes ? 'all' : countedToMax(listedAsDeleted, 'row')} as deleted`,
        ]),
  ];
  return `${what}${of}${more.length === 0 ? '' : ` (${more.join('; ')})`}`;
}

/** A backfill that began after the audit reads everything that differed, so nobody has to act until it ends. */
function describeDiffering({ differences, finishedAt }: DifferingAudit, { underWay }: KindOfRuns): Found {
  const found = counted(differences, 'difference');
  return {
    saw: `the audit that ended ${formatTime(finishedAt)} found ${found} between the service and the warehouse`,
    brief: `the last audit found ${found}`,
    counts: { differences },
    ...(underWay !== null && underWay.startedAt > finishedAt
      ? {
          word: 'Catching up',
          todo: 'Nothing for now: a backfill is under way. If it is of all companies and ends complete, it ends this.',
        }
      : {}),
  };
}

function describeUnwell(kind: RunKind, { state, runId, finishedAt, error }: LastRun): Found {
  const again =
    kind === 'reconcile'
      ? 'The next run reads the same again. If it fails again, see the error and its company.'
      : `See which parts failed (metersync backfill --run ${runId}), fix the cause, then run metersync backfill all.`;
  return {
    name: `last ${wordOfRun[kind]}`,
    brief: `the last ${wordOfRun[kind]} is ${state}`,
    labels: { kind, state },
    saw: `${state}, ended ${formatTime(finishedAt)}, run ${runId}${error === null ? '' : `: ${error}`}`,
    todo:
      state === 'suspect'
        ? 'See the error of the run. The next run reads the same again. If that is suspect, too, ask the operator of the service why the listing changes.'
        : again,
  };
}
