import type { FailureCode } from '../../contract/failures.ts';
import type { VerdictWord } from '../../health/finding-type.ts';
import type { Health, LastRun, TemporalHealth, WarehouseHealth } from '../../health/measured.ts';

/** States of a deployment: well, and ill in one way. */

const complete: LastRun = {
  runId: 'r',
  state: 'complete',
  startedAt: '2026-11-22',
  finishedAt: '2026-11-22',
  error: null,
  awaitsDecision: false,
  missedRows: 0,
  parts: { running: 0, complete: 6, partial: 0, suspect: 0, failed: 0 },
};
const completed = {
  running: 0,
  underWay: null,
  last: complete,
  lastCompleteAt: '2026-11-22',
  lastCompleteSecondsAgo: 60,
};
const nothing = { due: 0, waiting: 0, parked: 0, oldestDueSeconds: null, oldestSeconds: null };
export const warehouse: WarehouseHealth = {
  pending: { connection: nothing, document: nothing, interval: nothing },
  oldestDueSeconds: null,
  late: null,
  dead: 0,
  missingLately: 0,
  parked: [],
  loaded: true,
  runs: { full: completed, reconcile: completed },
  undecidedDeletes: 0,
  rejectedRecords: 0,
  blockedViews: 0,
  silenceHours: 72,
  silence: {
    lastEventAt: '2026-11-22',
    quietSeconds: 60,
    missedRows: 0,
    missedCompanies: 0,
    missedAt: null,
  },
  delays: { row: { p50: 0.02, p99: 0.1 }, record: { p50: 0.2, p99: 1 } },
  intervalShortfall: { events: 0, readings: 0 },
  issues: [],
  acknowledgedIssues: 0,
  sizes: { utility: 8_192 },
  watch: { lookedAt: '2026-11-22', lookedSecondsAgo: 30, open: [], unsent: null },
};
const scheduled = { state: 'active', reason: null, missed: 0 } as const;
export const temporal: TemporalHealth = {
  idle: [],
  builds: ['a'],
  absent: null,
  schedules: [
    { ...scheduled, name: 'full', next: '2026-11-23T03:00:00Z', intervalSeconds: 86_400 },
    { ...scheduled, name: 'reconcile', next: null, intervalSeconds: 3_600 },
  ],
  openGroups: 0,
  lateGroups: 0,
  stalledGroups: 0,
  stuckWorkflows: 0,
  certificate: null,
};
export const away = { away: 'it does not answer', todo: 'Bring it up.' };
const lastFull = (last: Partial<LastRun> | null, running = 0): Partial<WarehouseHealth> => ({
  runs: {
    ...warehouse.runs,
    full: { ...completed, running, last: last === null ? null : { ...complete, ...last } },
  },
});
const stalled = {
  running: 1,
  underWay: { runId: 'r', startedAt: '2026-11-22', progressAt: '2026-11-22', progressSecondsAgo: 1_801 },
};
const longAgo = { lastCompleteSecondsAgo: 1.5 * 86_400 + 1 };
export const paused = {
  ...scheduled,
  name: 'full',
  state: 'paused',
  reason: 'a move',
  next: null,
  intervalSeconds: null,
} as const;
const refused = { reason: 'no', owners: 0, since: '2026-11-22', nextAttemptAt: null };
const quiet = {
  ...warehouse.silence,
  lastEventAt: '2026-11-01',
  quietSeconds: 80 * 3_600,
};
const missed = {
  ...quiet,
  quietSeconds: 60,
  missedRows: 5,
  missedCompanies: 1,
  missedAt: '2026-11-02',
};

/** A finding of a type: its severity's word, a part of its sentence, and of what to do. */
export interface Ill {
  /** Its entry in the catalogue. */
  readonly type: string;
  readonly warehouse?: Partial<WarehouseHealth>;
  readonly temporal?: Partial<TemporalHealth>;
  readonly word: VerdictWord;
  readonly name: string;
  readonly key?: string;
  readonly saw: RegExp;
  readonly todo: RegExp;
}

const parked = (code: FailureCode, events = 0, parts = 0): Partial<WarehouseHealth> => ({
  parked: [{ ...refused, code, events, parts }],
});
const watch = (more: Partial<WarehouseHealth['watch']>): Partial<WarehouseHealth> => ({
  watch: { ...warehouse.watch, ...more },
});

/** Each finding that a worker can make, at least once. */
export const ills: readonly Ill[] = (
  [
    [
      'WorkersGone',
      {},
      { idle: ['events', 'backfill', 'checks'] },
      'Broken',
      'workers',
      /no worker is running for events/,
      /metersync worker/,
    ],
    [
      'WorkersGone',
      {},
      { absent: 'build 2' },
      'Broken',
      'workers',
      /events to build 2/,
      /set-current-version/,
    ],
    ['QueueIdle', {}, { idle: ['checks'] }, 'Needs you', 'workers', /running for checks/, /metersync worker/],
    ['WorkflowsStuck', {}, { stuckWorkflows: 1 }, 'Broken', 'workflows', /1 workflow keep/, /WorkflowsStuck/],
    [
      'HeartbeatStopped',
      watch({ lookedSecondsAgo: 301 }),
      {},
      'Broken',
      'watch',
      /5 min ago/,
      /metersync worker/,
    ],
    [
      'NotificationsFailing',
      watch({ unsent: { seconds: 601, error: '404' } }),
      {},
      'Needs you',
      'notifications',
      /for 10 min: 404/,
      /NOTIFY_URL/,
    ],
    [
      'CertificateExpires',
      {},
      { certificate: { expiresAt: '2026-12-01T00:00:00Z', secondsLeft: 9 * 86_400 } },
      'Needs you',
      'certificate',
      /expires 2026-12-01/,
      /Renew it/,
    ],
    [
      'KeyRefused',
      parked('SERVICE_KEY_REFUSED'),
      {},
      'Broken',
      'API key',
      /^SERVICE_KEY_REFUSED/,
      /SERVICE_API_KEY/,
    ],
    ['ServiceDown', parked('SERVICE_OUTAGE'), {}, 'Broken', 'service', /^SERVICE_OUTAGE/, /ask the service/],
    [
      'Parked',
      parked('SERVICE_ACCESS_DENIED', 1, 2),
      {},
      'Needs you',
      'parked',
      /1 event and 2 parts of backfills/,
      /metersync resume/,
      'code=SERVICE_ACCESS_DENIED',
    ],
    [
      'EventsStalled',
      { oldestDueSeconds: 901 },
      {},
      'Broken',
      'events',
      /due for 15 min/,
      /log of the workers/,
    ],
    [
      'EventsStalled',
      {},
      { lateGroups: 2, stalledGroups: 1 },
      'Broken',
      'events',
      /1 group of events waited/,
      /log of the workers/,
    ],
    ['EventsLate', { oldestDueSeconds: 61 }, {}, 'Catching up', 'events', /due for 61 s/, /Nothing, unless/],
    ['EventsLate', {}, { lateGroups: 2 }, 'Catching up', 'events', /2 groups of events/, /Nothing, unless/],
    ['Silent', { silence: quiet }, {}, 'Broken', 'silence', /came for 3 days/, /may be disabled/],
    [
      'ChangesMissed',
      { silence: missed },
      {},
      'Needs you',
      'missed changes',
      /5 changes in 1 company/,
      /may be disabled/,
    ],
    [
      'EventsDead',
      { dead: 1 },
      {},
      'Needs you',
      'dead events',
      /1 event cannot/,
      /events list --outcome dead/,
    ],
    [
      'EventsMissing',
      { missingLately: 1 },
      {},
      'Needs you',
      'missing events',
      /never showed/,
      /--outcome missing/,
    ],
    [
      'NotLoaded',
      { loaded: false, ...lastFull(null) },
      {},
      'Needs you',
      'first backfill',
      /no backfill/,
      /backfill all/,
    ],
    [
      'Loading',
      { loaded: false, ...lastFull(null, 1) },
      {},
      'Catching up',
      'first backfill',
      /is running/,
      /Nothing/,
    ],
    [
      'RunUnwell',
      lastFull({ state: 'partial', error: 'x' }),
      {},
      'Needs you',
      'last backfill',
      /^partial, .*: x$/,
      /backfill --run r/,
      'kind=full,state=partial',
    ],
    [
      'RunUnwell',
      lastFull({ state: 'failed' }),
      {},
      'Needs you',
      'last backfill',
      /^failed/,
      /backfill all/,
      'kind=full,state=failed',
    ],
    [
      'RunUnwell',
      lastFull({ state: 'suspect' }),
      {},
      'Needs you',
      'last backfill',
      /^suspect/,
      /next run reads it again/,
      'kind=full,state=suspect',
    ],
    [
      'RunOverdue',
      { runs: { ...warehouse.runs, full: { ...completed, ...longAgo } } },
      {},
      'Needs you',
      'next backfill',
      /^overdue: .* 36 h ago/,
      /backfill all/,
      'kind=full',
    ],
    [
      'RunStalled',
      { runs: { ...warehouse.runs, reconcile: { ...completed, ...stalled } } },
      {},
      'Needs you',
      'reconcile under way',
      /30 min ago/,
      /backfill --run r/,
      'kind=reconcile',
    ],
    [
      'SchedulePaused',
      {},
      { schedules: [paused] },
      'Needs you',
      'schedule full',
      /^paused: a move$/,
      /schedule resume full/,
      'schedule=full',
    ],
    ['Decide', { undecidedDeletes: 2 }, {}, 'Needs you', 'deletes', /2 rows disappeared/, /deletes approve/],
    [
      'RecordsRefused',
      { rejectedRecords: 2 },
      {},
      'Needs you',
      'refused records',
      /2 records/,
      /rejected_records/,
    ],
    ['ViewsBlocked', { blockedViews: 1 }, {}, 'Needs you', 'blocked views', /1 typed view/, /views refresh/],
  ] as const
).map(([type, a, b, word, name, saw, todo, key = '']) => ({
  type,
  warehouse: a,
  temporal: b,
  word,
  name,
  saw,
  todo,
  key,
}));

const schema = { known: 1, applied: 1, floor: 1 };

export const health = (a: Partial<WarehouseHealth> = {}, b: Partial<TemporalHealth> = {}): Health => ({
  warehouse: { ...warehouse, ...a },
  temporal: { ...temporal, ...b },
  schema,
});
