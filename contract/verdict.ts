import { type FailureCode, failureTypes } from './failures.ts';
import { judgeDue, type LateWork } from './late-work.ts';
import { type RunKind, type RunState, runKinds, type Severity } from './names.ts';
import { alarmPolicy, notifyPolicy, recordPolicy } from './retry-policy.ts';
import type { SchemaVersions } from './schema-versions.ts';
import { formatSeconds, formatTime } from './times.ts';
import { countedToMax, eventsGivenUp } from './words.ts';

/**
 * The one word for the health of a deployment, and its reasons. `status`, `doctor` and every other report of
 * health use this function, so that they agree.
 */
export const verdictWords = ['In sync', 'Catching up', 'Unknown', 'Needs you', 'Broken'] as const;
export type VerdictWord = (typeof verdictWords)[number];

/** Exit statuses of `metersync status --exit-code`. 1 and 2 mean that a command failed or was misused. */
export const verdictStatus: Readonly<Record<VerdictWord, number>> = {
  'In sync': 0,
  'Catching up': 0,
  'Needs you': 3,
  Broken: 4,
  Unknown: 5,
};

/** The result for one thing that was examined. */
export interface Finding {
  readonly name: string;
  readonly word: VerdictWord;
  readonly saw: string;
  /** What to do about it; null where all is well. */
  readonly todo: string | null;
}

export interface Verdict {
  readonly word: VerdictWord;
  /** All findings, the worst first. */
  readonly findings: readonly Finding[];
}

/** The last finished run of a kind; a complete first backfill of one company is passed over. */
export interface LastRun {
  readonly runId: string;
  readonly state: RunState;
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly error: string | null;
  /** Rows changed or gone without the event that should report it. */
  readonly missedRows: number;
  /** Its parts by state: resources of companies, and the list of companies. */
  readonly parts: Readonly<Record<RunState, number>>;
}

/** A run that has not ended. */
export interface RunUnderWay {
  readonly runId: string;
  readonly startedAt: string;
  /** When it last stored a page, or began or ended a part. */
  readonly progressAt: string;
  readonly progressSecondsAgo: number;
}

/** The runs of a kind. */
export interface KindOfRuns {
  readonly running: number;
  /** Of those running the one whose last page is the oldest. */
  readonly underWay: RunUnderWay | null;
  readonly last: LastRun | null;
  /** When the last complete one of all companies ended. */
  readonly lastCompleteAt: string | null;
  readonly lastCompleteSecondsAgo: number | null;
}

/** `due` is read at once, `waiting` again later, `parked` until somebody acts. */
export const pendingStates = ['due', 'waiting', 'parked'] as const;
export type PendingState = (typeof pendingStates)[number];

/** The kinds of records that wait, as the journal names them. */
export const pendingKinds = ['connection', 'document', 'interval'] as const;
export type PendingKind = (typeof pendingKinds)[number];

/** Pending events of a kind. */
export interface PendingEvents extends Readonly<Record<PendingState, number>> {
  /** How long its oldest due record has been due; null without one. */
  readonly oldestDueSeconds: number | null;
  /** How long the oldest pending event waits; null without one. */
  readonly oldestSeconds: number | null;
}

/** Work parked for one failure: events, and parts of backfills that no later run read. */
export interface ParkedWork {
  readonly code: FailureCode;
  /** The first of its error messages. */
  readonly reason: string;
  readonly events: number;
  /** Companies, and for intervals meters, whose events wait. */
  readonly owners: number;
  readonly parts: number;
  readonly since: string;
  /** When the events are tried again automatically; null if only a backfill or a resume tries again. */
  readonly nextAttemptAt: string | null;
}

/** Measures of whether the service's events arrive. */
export interface Silence {
  /** When the last event of the service was received; null if none ever was. */
  readonly lastEventAt: string | null;
  /** Seconds since then or, without any event, since the first run began; null before that. */
  readonly quietSeconds: number | null;
  /** Changes that runs found since the last event, or in the last day, though an event should have reported them. */
  readonly missedRows: number;
  /** Companies with such changes, and when the last was found. */
  readonly missedCompanies: number;
  readonly missedAt: string | null;
  /** Sentences about what looks wrong; empty if nothing does. */
  readonly signs: readonly string[];
}

/** Of the last events that were settled, seconds from receipt. */
export interface Delay {
  readonly p50: number;
  readonly p99: number;
}

/**
 * Health by the warehouse's own tables. Ages are seconds. Counts are exact up to `limits.countMax`, and one
 * more than that where there are more: `countInWords` prints `10,000+`. Those of dead and missing events end at
 * `limits.givenUpMax`.
 */
export interface WarehouseHealth {
  readonly pending: Readonly<Record<PendingKind, PendingEvents>>;
  /** How long the oldest due record has been due; null without one. */
  readonly oldestDueSeconds: number | null;
  /** Why due work is late; null while none is. */
  readonly late: LateWork | null;
  readonly dead: number;
  /** Events that became missing within the last day. */
  readonly missingLately: number;
  /** Parked work by failure, longest parked first. An outage counts, too. */
  readonly parked: readonly ParkedWork[];
  readonly runs: Readonly<Record<RunKind, KindOfRuns>>;
  /** Whether any backfill of all companies ever ended with data. */
  readonly loaded: boolean;
  readonly undecidedDeletes: number;
  readonly rejectedRecords: number;
  readonly silence: Silence;
  /** After so many hours without an event, none can likely arrive; 0 turns this off. */
  readonly silenceHours: number;
  /** From receipt to the row, and to the read of the record; null before the first. */
  readonly delays: Readonly<Record<'row' | 'record', Delay | null>>;
  /** Interval events whose ranges have fewer readings than they reported, and how many are lacking. */
  readonly intervalShortfall: { readonly events: number; readonly readings: number };
  /** Open issues of the data that nobody acknowledged. */
  readonly issues: readonly { readonly check: string; readonly severity: Severity; readonly open: number }[];
  readonly acknowledgedIssues: number;
  /** Bytes of each schema, as Postgres last estimated them. */
  readonly sizes: Readonly<Record<string, number>>;
  readonly watch: WatchHealth;
}

/** The watch, and the alarms that it opened. */
export interface WatchHealth {
  /** When it last ran; null before the first. */
  readonly lookedAt: string | null;
  readonly lookedSecondsAgo: number | null;
  readonly open: readonly { readonly name: string; readonly key: string }[];
  /** For how long NOTIFY_URL has not taken an alarm, and why not; null if none waits. */
  readonly unsent: { readonly seconds: number; readonly error: string } | null;
}

export interface ScheduleHealth {
  readonly name: RunKind;
  readonly state: 'active' | 'paused' | 'absent';
  readonly reason: string | null;
  /** When it starts the next run, ISO 8601. */
  readonly next: string | null;
  /** The longest time from one of its next starts to another; null where none follows. */
  readonly intervalSeconds: number | null;
  /** Starts that were skipped, as Temporal was away for longer than the catch-up window. */
  readonly missed: number;
}

/** Health by Temporal. */
export interface TemporalHealth {
  /** Queues without a worker. */
  readonly idle: readonly string[];
  /** Build ids of the workers that poll the queue of events. */
  readonly builds: readonly string[];
  /** The workers that Temporal gives events to, if none of them polls; else null. */
  readonly absent: string | null;
  readonly schedules: readonly ScheduleHealth[];
  /** Groups of events that were acknowledged and are not yet recorded. */
  readonly openGroups: number;
  /** Those of them that began to wait more than `recordPolicy.lagSeconds` ago, or `waitMaxSeconds`. */
  readonly lateGroups: number;
  readonly stalledGroups: number;
  /** Running workflows whose task failed several times in a row; null where this Temporal does not say. */
  readonly stuckWorkflows: number | null;
  /** When the client certificate for Temporal expires, ISO 8601; null without one. */
  readonly certificate: { readonly expiresAt: string; readonly secondsLeft: number } | null;
}

/** Why the warehouse or Temporal could not be reached, and what to do about it. */
export interface Away {
  readonly away: string;
  readonly todo: string;
}

export interface Health {
  readonly warehouse: WarehouseHealth | Away;
  readonly temporal: TemporalHealth | Away;
  /** Null while Postgres does not answer, or takes no writes. */
  readonly schema: SchemaVersions | null;
}

/** Judges a deployment. A side that cannot be reached is `Unknown`, never well. */
export function verdictOf({ warehouse, temporal }: Pick<Health, 'warehouse' | 'temporal'>): Verdict {
  const findings = [
    ...('away' in temporal ? [unknown('Temporal', temporal)] : judgeTemporal(temporal)),
    ...('away' in warehouse ? [unknown('warehouse', warehouse)] : judgeWarehouse(warehouse)),
    ...overdueRuns({ warehouse, temporal }).map(judgeOverdue),
  ].toSorted((a, b) => rank(b.word) - rank(a.word));
  return { word: worst(findings.map(({ word }) => word)), findings };
}

export const worst = (words: readonly VerdictWord[]): VerdictWord =>
  words.toSorted((a, b) => rank(b) - rank(a))[0] ?? 'In sync';

const rank = (word: VerdictWord): number => verdictWords.indexOf(word);

const unknown = (name: string, { away, todo }: Away): Finding => ({ name, word: 'Unknown', saw: away, todo });
const well = (name: string, saw: string): Finding => ({ name, word: 'In sync', saw, todo: null });

function judgeTemporal(health: TemporalHealth): Finding[] {
  return [
    judgeWorkers(health),
    ...judgeGroups(health),
    ...judgeStuck(health),
    ...judgeCertificate(health),
    ...health.schedules.map(judgeSchedule),
  ];
}

/** The warehouse knows nothing of events that are not recorded yet. */
function judgeGroups({ lateGroups, stalledGroups }: TemporalHealth): Finding[] {
  const wait = (groups: number, seconds: number): string =>
    `${countedToMax(groups, 'group')} of events waited for more than ${formatSeconds(seconds)} to be recorded`;
  if (stalledGroups > 0)
    return [
      {
        name: 'groups',
        word: 'Broken',
        saw: wait(stalledGroups, recordPolicy.waitMaxSeconds),
        todo: 'See the log of the workers: Postgres holds them up, or no worker takes them.',
      },
    ];
  if (lateGroups === 0) return [];
  const saw = wait(lateGroups, recordPolicy.lagSeconds);
  return [{ name: 'groups', word: 'Catching up', saw, todo: 'Nothing, unless it grows.' }];
}

function judgeStuck({ stuckWorkflows }: TemporalHealth): Finding[] {
  if (stuckWorkflows === null || stuckWorkflows === 0) return [];
  return [
    {
      name: 'workflows',
      word: 'Broken',
      saw: `tasks of ${countedToMax(stuckWorkflows, 'workflow')} keep failing: their work stands still`,
      todo: 'Run metersync doctor; see WorkflowsStuck in docs/runbooks.md.',
    },
  ];
}

/** Whether the client certificate for Temporal has to be renewed. */
export const expires = (
  certificate: TemporalHealth['certificate'],
): certificate is NonNullable<TemporalHealth['certificate']> =>
  certificate !== null && certificate.secondsLeft < alarmPolicy.certificateSeconds;

function judgeCertificate({ certificate }: TemporalHealth): Finding[] {
  if (!expires(certificate)) return [];
  return [
    {
      name: 'certificate',
      word: 'Needs you',
      saw: `the client certificate for Temporal expires ${formatTime(certificate.expiresAt)}`,
      todo: 'Renew it where the configuration of Temporal names it, and restart receivers and workers.',
    },
  ];
}

function judgeWorkers({ idle, absent }: TemporalHealth): Finding {
  const name = 'workers';
  if (absent !== null)
    return {
      name,
      word: 'Broken',
      saw: `Temporal gives events to ${absent}, and workers of others poll`,
      todo: 'Promote a build that polls with temporal worker deployment set-current-version; see WorkersGone in docs/runbooks.md.',
    };
  if (idle.length === 0) return well(name, 'they take events, backfills and checks, and look for alarms');
  return {
    name,
    word: idle.includes('events') ? 'Broken' : 'Needs you',
    saw: `no worker is running for ${idle.join(', ')}: their work waits`,
    todo: 'Run metersync start, or metersync worker.',
  };
}

function judgeSchedule({ name: kind, state, reason, next }: ScheduleHealth): Finding {
  const name = `schedule ${kind}`;
  if (state === 'paused')
    return {
      name,
      word: 'Needs you',
      saw: `paused${reason === null ? '' : `: ${reason}`}`,
      todo: `Run metersync schedule resume ${kind}; or set ${kind === 'full' ? 'BACKFILL_CRON' : 'RECONCILE_EVERY'} to none, if it is not to run any more.`,
    };
  // Having none is a choice, made by its setting.
  if (state === 'absent') return well(name, 'there is none');
  return well(name, next === null ? 'active' : `next run ${formatTime(next)}`);
}

function judgeWarehouse(health: WarehouseHealth): Finding[] {
  return [
    judgeLoad(health),
    judgeRun('full', health.runs.full.last),
    judgeRun('reconcile', health.runs.reconcile.last),
    ...stalledRuns(health).map(judgeStalled),
    judgeDue(health),
    ...health.parked.map(judgeParked),
    ...judgeCounts(health),
    judgeSilence(health),
    ...judgeWatch(health.watch),
  ].filter((finding) => finding !== undefined);
}

function judgeLoad({ loaded, runs }: WarehouseHealth): Finding | undefined {
  if (loaded) return undefined;
  const name = 'first backfill';
  if (runs.full.running > 0)
    return {
      name,
      word: 'Catching up',
      saw: 'the first backfill is running',
      todo: 'Nothing: it ends by itself.',
    };
  return {
    name,
    word: 'Needs you',
    saw: 'no backfill of all companies has ended yet',
    todo: 'Run metersync backfill all.',
  };
}

const wordOfRun = { full: 'backfill', reconcile: 'reconcile' } as const satisfies Record<RunKind, string>;

function judgeRun(kind: RunKind, last: LastRun | null): Finding | undefined {
  if (last === null) return undefined;
  const name = `last ${wordOfRun[kind]}`;
  const why = last.error === null ? '' : `: ${last.error}`;
  const saw = `${last.state}, ended ${formatTime(last.finishedAt)}, run ${last.runId}${why}`;
  if (last.state === 'complete') return well(name, saw);
  return { name, word: 'Needs you', saw, todo: todoOfRun(kind, last) };
}

function todoOfRun(kind: RunKind, { state, runId }: LastRun): string {
  if (state === 'suspect')
    return 'See its error and metersync deletes list, and decide; if nothing waits there, the next run reads it again.';
  if (kind === 'reconcile') return 'The next run reads it again; if it lasts, see the error and its company.';
  return `See which parts failed (metersync backfill --run ${runId}), mend the cause, then run metersync backfill all.`;
}

/** Lists the kinds whose run has stored nothing for too long. */
export function stalledRuns({ runs }: WarehouseHealth): { kind: RunKind; run: RunUnderWay }[] {
  return runKinds.flatMap((kind) => {
    const run = runs[kind].underWay;
    return run !== null && run.progressSecondsAgo > alarmPolicy.runStalledSeconds ? [{ kind, run }] : [];
  });
}

function judgeStalled({ kind, run }: { kind: RunKind; run: RunUnderWay }): Finding {
  return {
    name: `${wordOfRun[kind]} under way`,
    word: 'Needs you',
    saw: `run ${run.runId} stored its last page ${formatSeconds(run.progressSecondsAgo)} ago`,
    todo: `See what it reads (metersync backfill --run ${run.runId}), and RunStalled in docs/runbooks.md.`,
  };
}

/** Lists the kinds of which no run completed for too long, by the interval of their schedule. */
export function overdueRuns({
  warehouse,
  temporal,
}: Pick<Health, 'warehouse' | 'temporal'>): { kind: RunKind; secondsAgo: number }[] {
  if ('away' in warehouse || 'away' in temporal) return [];
  return temporal.schedules.flatMap(({ name: kind, intervalSeconds }) => {
    const secondsAgo = warehouse.runs[kind].lastCompleteSecondsAgo;
    if (secondsAgo === null || intervalSeconds === null) return [];
    return secondsAgo > alarmPolicy.runOverdueIntervals * intervalSeconds ? [{ kind, secondsAgo }] : [];
  });
}

function judgeOverdue({ kind, secondsAgo }: { kind: RunKind; secondsAgo: number }): Finding {
  return {
    name: `next ${wordOfRun[kind]}`,
    word: 'Needs you',
    saw: `overdue: the last complete one ended ${formatSeconds(secondsAgo)} ago`,
    todo: 'See RunOverdue in docs/runbooks.md; metersync backfill all reads everything now.',
  };
}

function judgeParked({ code, events, parts }: WarehouseHealth['parked'][number]): Finding {
  const todo = failureTypes[code].operator;
  if (code === 'SERVICE_OUTAGE')
    return { name: 'service', word: 'Broken', saw: `${code}: it fails every request`, todo };
  const what = [
    ...(events > 0 ? [countedToMax(events, 'event')] : []),
    ...(parts > 0 ? [countedToMax(parts, 'part')] : []),
  ];
  return {
    name: 'parked',
    // All requests use the one key: without it nothing is read.
    word: code === 'SERVICE_KEY_REFUSED' ? 'Broken' : 'Needs you',
    saw: `${code}: ${what.length === 0 ? 'nothing waits yet' : `${what.join(' and ')}${parts > 0 ? ' of backfills' : ''}`}`,
    todo,
  };
}

function judgeCounts(health: WarehouseHealth): Finding[] {
  const { dead, missingLately, undecidedDeletes, rejectedRecords } = health;
  const ifAny = (count: number, finding: Omit<Finding, 'word'>): Finding[] =>
    count === 0 ? [] : [{ ...finding, word: 'Needs you' }];
  return [
    ...ifAny(dead, {
      name: 'dead events',
      saw: `${eventsGivenUp(dead)} cannot be applied`,
      todo: 'See why with metersync events list --outcome dead; mend the cause, then metersync events replay --outcome dead. What nobody can mend: metersync events ignore ID.',
    }),
    ...ifAny(missingLately, {
      name: 'missing events',
      saw: `${eventsGivenUp(missingLately)} of the last day: the service never showed their state`,
      todo: 'See metersync events list --outcome missing, and ask the service; a backfill that finds the records settles them.',
    }),
    ...ifAny(undecidedDeletes, {
      name: 'deletes',
      saw: `${countedToMax(undecidedDeletes, 'row')} gone from the service at once: kept until somebody decides`,
      todo: 'See metersync deletes list; then metersync deletes approve or reject.',
    }),
    ...ifAny(rejectedRecords, {
      name: 'refused records',
      saw: `${countedToMax(rejectedRecords, 'record')} that Postgres refuses`,
      todo: 'See metersync.rejected_records for the reason of each, and ask the service to correct them.',
    }),
  ];
}

function judgeSilence({ silence, silenceHours }: WarehouseHealth): Finding {
  const { signs, quietSeconds, lastEventAt } = silence;
  const name = 'silence';
  const quiet = isQuiet(silence, silenceHours);
  if (signs.length === 0 && !quiet)
    return well(
      name,
      lastEventAt === null
        ? 'no event came yet'
        : `the last event came at ${formatTime(lastEventAt)}${quietSeconds === null ? '' : ` (${formatSeconds(quietSeconds)} ago)`}`,
    );
  return { name, word: quiet ? 'Broken' : 'Needs you', saw: signs.join('; '), todo: silenceOperator };
}

function judgeWatch({ lookedSecondsAgo, unsent }: WatchHealth): Finding[] {
  const stopped = lookedSecondsAgo !== null && lookedSecondsAgo > notifyPolicy.heartbeatMaxSeconds;
  return [
    ...(stopped
      ? [
          {
            name: 'watch',
            word: 'Broken' as const,
            saw: `the watch last ran ${formatSeconds(lookedSecondsAgo)} ago: nobody sends alarms`,
            todo: 'Run metersync start, or metersync worker; see the workflow watch on Temporal’s web page.',
          },
        ]
      : []),
    ...(unsent !== null && unsent.seconds > notifyPolicy.unsentMaxSeconds
      ? [
          {
            name: 'notifications',
            word: 'Needs you' as const,
            saw: `NOTIFY_URL has taken none for ${formatSeconds(unsent.seconds)}: ${unsent.error}`,
            todo: 'Correct NOTIFY_URL and NOTIFY_SECRET, and restart the workers.',
          },
        ]
      : []),
  ];
}

/** Whether no event came for longer than SILENCE_HOURS; 0 turns that off. */
export const isQuiet = ({ quietSeconds }: Pick<Silence, 'quietSeconds'>, silenceHours: number): boolean =>
  silenceHours > 0 && quietSeconds !== null && quietSeconds > silenceHours * 3_600;

/** The operator's action for any sign that events do not arrive. */
const silenceOperator =
  'The webhook endpoint may be disabled: it is after 5 days of failed deliveries. Run metersync doctor; enable the endpoint in the portal (metersync webhooks portal) and replay there what failed.';

/** Formats the first line of a verdict: the word, and the worst finding. */
export function headline({ word, findings }: Verdict): string {
  const reasons = findings.filter((finding) => finding.word === word && word !== 'In sync');
  const [first, ...more] = reasons;
  if (first === undefined) return word;
  return `${word}: ${first.name}: ${first.saw}${more.length === 0 ? '' : `; and ${more.length} more`}`;
}
