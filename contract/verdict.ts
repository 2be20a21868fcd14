import { type FailureCode, failureTypes } from './failures.ts';
import type { RunKind, RunState } from './names.ts';
import { shownSeconds, shownTime } from './times.ts';
import { counted } from './words.ts';

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

/** The last finished run of a kind. */
export interface LastRun {
  readonly runId: string;
  readonly state: RunState;
  readonly finishedAt: string;
  readonly error: string | null;
}

/** Health by the warehouse's own tables. Ages are seconds. */
export interface WarehouseHealth {
  /** How long the oldest due record has been due; null without one. */
  readonly oldestDueSeconds: number | null;
  readonly dead: number;
  /** Events that became missing within the last day. */
  readonly missingLately: number;
  /** Parked work by failure: events, and parts of backfills that no later run read. An outage counts, too. */
  readonly parked: readonly { readonly code: FailureCode; readonly events: number; readonly parts: number }[];
  readonly runs: Readonly<Record<RunKind, { readonly running: number; readonly last: LastRun | null }>>;
  /** Whether any backfill ever wrote rows. */
  readonly loaded: boolean;
  readonly undecidedDeletes: number;
  readonly rejectedRecords: number;
  /** Typed views that lack values. */
  readonly blockedViews: number;
  readonly silence: {
    readonly lastEventAt: string | null;
    readonly quietSeconds: number | null;
    readonly signs: readonly string[];
  };
  /** After so many hours without an event, none can likely arrive; 0 turns this off. */
  readonly silenceHours: number;
}

export interface ScheduleHealth {
  readonly name: RunKind;
  readonly state: 'active' | 'paused' | 'removed' | 'absent';
  readonly reason: string | null;
  /** When it starts the next run, ISO 8601. */
  readonly next: string | null;
}

/** Health by Temporal. */
export interface TemporalHealth {
  /** Queues without a worker. */
  readonly idle: readonly string[];
  readonly schedules: readonly ScheduleHealth[];
}

/** Why the warehouse or Temporal could not be reached, and what to do about it. */
export interface Away {
  readonly away: string;
  readonly todo: string;
}

export interface Health {
  readonly warehouse: WarehouseHealth | Away;
  readonly temporal: TemporalHealth | Away;
}

/** Age of due work from which its catch-up lags, and from which it has stalled. */
const lagSeconds = 60;
const stalledSeconds = 900;

/** Judges a deployment. A side that cannot be reached is `Unknown`, never well. */
export function verdictOf({ warehouse, temporal }: Health): Verdict {
  const findings = [
    ...('away' in temporal ? [unknown('Temporal', temporal)] : judgeTemporal(temporal)),
    ...('away' in warehouse ? [unknown('warehouse', warehouse)] : judgeWarehouse(warehouse)),
  ].toSorted((a, b) => rank(b.word) - rank(a.word));
  return { word: worst(findings.map(({ word }) => word)), findings };
}

export const worst = (words: readonly VerdictWord[]): VerdictWord =>
  words.toSorted((a, b) => rank(b) - rank(a))[0] ?? 'In sync';

const rank = (word: VerdictWord): number => verdictWords.indexOf(word);

const unknown = (name: string, { away, todo }: Away): Finding => ({ name, word: 'Unknown', saw: away, todo });
const well = (name: string, saw: string): Finding => ({ name, word: 'In sync', saw, todo: null });

function judgeTemporal({ idle, schedules }: TemporalHealth): Finding[] {
  return [judgeWorkers(idle), ...schedules.map(judgeSchedule)];
}

function judgeWorkers(idle: readonly string[]): Finding {
  const name = 'workers';
  if (idle.length === 0) return well(name, 'they take events, backfills and checks');
  const vital = idle.filter((queue) => queue !== 'checks');
  return {
    name,
    word: vital.length > 0 ? 'Broken' : 'Needs you',
    saw: `no worker is running for ${idle.join(', ')}: what arrives there waits`,
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
      todo: `Run metersync schedule resume ${kind}; or metersync schedule remove ${kind}, if it is not to run any more.`,
    };
  // Having none is a choice, made by a command or by MAKE_SCHEDULES.
  if (state === 'removed') return well(name, 'removed by somebody');
  if (state === 'absent') return well(name, 'there is none');
  return well(name, next === null ? 'active' : `next run ${shownTime(next)}`);
}

function judgeWarehouse(health: WarehouseHealth): Finding[] {
  return [
    judgeLoad(health),
    judgeRun('full', health.runs.full.last),
    judgeRun('reconcile', health.runs.reconcile.last),
    judgeDue(health.oldestDueSeconds),
    ...health.parked.map(judgeParked),
    ...judgeCounts(health),
    judgeSilence(health),
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
    saw: 'nothing was ever loaded: no backfill has ended',
    todo: 'Run metersync backfill all.',
  };
}

function judgeRun(kind: RunKind, last: LastRun | null): Finding | undefined {
  if (last === null) return undefined;
  const what = kind === 'full' ? 'backfill' : 'reconcile';
  const name = `last ${what}`;
  const why = last.error === null ? '' : `: ${last.error}`;
  const saw = `${last.state}, ended ${shownTime(last.finishedAt)}, run ${last.runId}${why}`;
  if (last.state === 'complete') return well(name, saw);
  return { name, word: 'Needs you', saw, todo: todoOfRun(kind, last) };
}

function todoOfRun(kind: RunKind, { state, runId }: LastRun): string {
  if (state === 'suspect')
    return 'See metersync deletes list, and decide; if nothing waits there, the next run reads it again.';
  if (kind === 'reconcile') return 'The next run reads it again; if it lasts, see the error and its company.';
  return `See which parts failed (metersync backfill --run ${runId}), mend the cause, then run metersync backfill all.`;
}

function judgeDue(seconds: number | null): Finding {
  const name = 'events';
  if (seconds === null || seconds <= lagSeconds) return well(name, 'what is due is read at once');
  const saw = `work is due for ${shownSeconds(seconds)} that nobody did`;
  if (seconds <= stalledSeconds) return { name, word: 'Catching up', saw, todo: 'Nothing, unless it grows.' };
  return {
    name,
    word: 'Broken',
    saw,
    todo: 'See the log of the workers and metersync doctor: the service, the warehouse or the workers hold it up.',
  };
}

function judgeParked({ code, events, parts }: WarehouseHealth['parked'][number]): Finding {
  const todo = failureTypes[code].operator;
  if (code === 'SERVICE_OUTAGE')
    return { name: 'service', word: 'Broken', saw: `${code}: it fails all that it is asked`, todo };
  const what = [
    ...(events > 0 ? [counted(events, 'event')] : []),
    ...(parts > 0 ? [counted(parts, 'part')] : []),
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
  const { dead, missingLately, undecidedDeletes, rejectedRecords, blockedViews } = health;
  const ifAny = (count: number, finding: Omit<Finding, 'word'>): Finding[] =>
    count === 0 ? [] : [{ ...finding, word: 'Needs you' }];
  return [
    ...ifAny(dead, {
      name: 'dead events',
      saw: `${counted(dead, 'event')} cannot be applied`,
      todo: 'See why with metersync events list --outcome dead; mend the cause, then metersync events replay --outcome dead.',
    }),
    ...ifAny(missingLately, {
      name: 'missing events',
      saw: `${counted(missingLately, 'event')} of the last day: the service never showed what they told of`,
      todo: 'See metersync events list --outcome missing, and ask the service; a backfill that finds the records settles them.',
    }),
    ...ifAny(undecidedDeletes, {
      name: 'deletes',
      saw: `${counted(undecidedDeletes, 'row')} gone from the service at once: kept until somebody decides`,
      todo: 'See metersync deletes list; then metersync deletes approve or reject.',
    }),
    ...ifAny(rejectedRecords, {
      name: 'refused records',
      saw: `${counted(rejectedRecords, 'record')} that Postgres refuses`,
      todo: 'See metersync.rejected_records for the reason of each, and ask the service to correct them.',
    }),
    ...ifAny(blockedViews, {
      name: 'blocked views',
      saw: `${counted(blockedViews, 'typed view')} cannot show all values`,
      todo: 'See metersync views refresh, which names what was built on them.',
    }),
  ];
}

function judgeSilence({ silence, silenceHours }: WarehouseHealth): Finding {
  const { signs, quietSeconds, lastEventAt } = silence;
  const name = 'silence';
  if (signs.length === 0)
    return well(
      name,
      lastEventAt === null
        ? 'no event came yet'
        : `the last event came at ${shownTime(lastEventAt)}${quietSeconds === null ? '' : ` (${shownSeconds(quietSeconds)} ago)`}`,
    );
  const quiet = silenceHours > 0 && quietSeconds !== null && quietSeconds > silenceHours * 3_600;
  return { name, word: quiet ? 'Broken' : 'Needs you', saw: signs.join('; '), todo: silenceOperator };
}

/** The operator's action for any sign that events do not arrive. */
export const silenceOperator =
  'The webhook endpoint may be disabled: it is after 5 days of failed deliveries. Run metersync doctor; enable the endpoint in the portal (metersync webhooks portal) and replay there what failed.';

/** Formats the first line of a verdict: the word, and the worst finding. */
export function headline({ word, findings }: Verdict): string {
  const reasons = findings.filter((finding) => finding.word === word && word !== 'In sync');
  const [first, ...more] = reasons;
  if (first === undefined) return word;
  return `${word}: ${first.name}: ${first.saw}${more.length === 0 ? '' : `; and ${more.length} more`}`;
}
