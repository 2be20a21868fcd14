import type { Health, LastRun, TemporalHealth, WarehouseHealth } from '../../contract/verdict.ts';

/** Faults of a deployment that the verdict knows. */

const complete: LastRun = {
  runId: 'r',
  state: 'complete',
  startedAt: '2026-11-22',
  finishedAt: '2026-11-22',
  error: null,
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
  silenceHours: 72,
  silence: {
    lastEventAt: '2026-11-22',
    quietSeconds: 60,
    missedRows: 0,
    missedCompanies: 0,
    missedAt: null,
    signs: [],
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
export const refused = { reason: 'no', owners: 0, since: '2026-11-22', nextAttemptAt: null };
const quiet = {
  ...warehouse.silence,
  lastEventAt: '2026-11-01',
  quietSeconds: 80 * 3_600,
  signs: ['no event came for 80 hours'],
};
const missed = {
  ...quiet,
  quietSeconds: 60,
  missedRows: 5,
  signs: ['5 changes were found without an event'],
};

/** A fault, its word, and the text for the operator. */
export const ills: readonly [string, Partial<WarehouseHealth>, Partial<TemporalHealth>, string, RegExp][] = [
  ['no worker', {}, { idle: ['events', 'backfill', 'checks'] }, 'Broken', /metersync worker/],
  ['none for checks', {}, { idle: ['checks'] }, 'Needs you', /metersync worker/],
  ['a build that has the work and does not poll', {}, { absent: 'build 2' }, 'Broken', /set-current-version/],
  [
    'a certificate that expires soon',
    {},
    // At the end of 1970's first day, when promtool looks, nine days are left.
    { certificate: { expiresAt: '1970-01-11T00:00:00Z', secondsLeft: 9 * 86_400 } },
    ...(['Needs you', /Renew it/] as const),
  ],
  ['events that wait to be recorded', {}, { lateGroups: 2 }, 'Catching up', /Nothing, unless/],
  ['events that nobody records', {}, { lateGroups: 2, stalledGroups: 1 }, 'Broken', /log of the workers/],
  ['a paused schedule', {}, { schedules: [paused] }, 'Needs you', /schedule resume full/],
  [
    'a run that ended partial',
    lastFull({ state: 'partial', error: 'x' }),
    {},
    'Needs you',
    /backfill --run r/,
  ],
  ['a run that failed', lastFull({ state: 'failed' }), {}, 'Needs you', /backfill all/],
  ['a run that is suspect', lastFull({ state: 'suspect' }), {}, 'Needs you', /deletes list/],
  ['a dead event', { dead: 1 }, {}, 'Needs you', /events list --outcome dead/],
  ['a missing event', { missingLately: 1 }, {}, 'Needs you', /--outcome missing/],
  [
    'parked work',
    { parked: [{ ...refused, code: 'SERVICE_ACCESS_DENIED', events: 1, parts: 2 }] },
    ...([{}, 'Needs you', /metersync resume/] as const),
  ],
  [
    'a refused key',
    { parked: [{ ...refused, code: 'SERVICE_KEY_REFUSED', events: 0, parts: 0 }] },
    ...([{}, 'Broken', /SERVICE_API_KEY/] as const),
  ],
  [
    'an outage of the service',
    { parked: [{ ...refused, code: 'SERVICE_OUTAGE', events: 0, parts: 0 }] },
    ...([{}, 'Broken', /ask the service/] as const),
  ],
  ['nothing ever loaded', { loaded: false, ...lastFull(null) }, {}, 'Needs you', /backfill all/],
  ['a first backfill', { loaded: false, ...lastFull(null, 1) }, {}, 'Catching up', /Nothing/],
  ['work that is due for long', { oldestDueSeconds: 61 }, {}, 'Catching up', /Nothing/],
  ['work that nobody does', { oldestDueSeconds: 901 }, {}, 'Broken', /log of the workers/],
  ['deletions to decide', { undecidedDeletes: 2 }, {}, 'Needs you', /deletes approve/],
  ['records that Postgres refuses', { rejectedRecords: 2 }, {}, 'Needs you', /rejected_records/],
  ['silence', { silence: quiet }, {}, 'Broken', /endpoint may be disabled/],
  [
    'a watch that stopped',
    { watch: { ...warehouse.watch, lookedSecondsAgo: 301 } },
    ...([{}, 'Broken', /metersync worker/] as const),
  ],
  [
    'a target that takes nothing',
    { watch: { ...warehouse.watch, unsent: { seconds: 601, error: '404' } } },
    ...([{}, 'Needs you', /NOTIFY_URL/] as const),
  ],
  ['changes without an event', { silence: missed }, {}, 'Needs you', /endpoint may be disabled/],
  ['a workflow whose task fails', {}, { stuckWorkflows: 1 }, 'Broken', /WorkflowsStuck/],
  [
    'runs that store nothing',
    { runs: { full: { ...completed, ...stalled }, reconcile: { ...completed, ...stalled } } },
    ...([{}, 'Needs you', /backfill --run r/] as const),
  ],
  [
    'runs that are overdue',
    { runs: { full: { ...completed, ...longAgo }, reconcile: { ...completed, ...longAgo } } },
    ...([{}, 'Needs you', /backfill all/] as const),
  ],
];

const schema = { known: 1, applied: 1, floor: 1 };

export const health = (a: Partial<WarehouseHealth> = {}, b: Partial<TemporalHealth> = {}): Health => ({
  warehouse: { ...warehouse, ...a },
  temporal: { ...temporal, ...b },
  schema,
});
