import type { FailureCode } from '../../contract/failures.ts';
import type { Health, LastRun, TemporalHealth, WarehouseHealth } from '../../health/measured.ts';

/** States of a deployment: one state without a fault, and states with one fault each. */

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
  waiting: [],
  parked: [],
  loaded: true,
  runs: { full: completed, reconcile: completed },
  undecidedDeletes: 0,
  undecided: null,
  keptDeletes: 0,
  rejectedRecords: 0,
  silenceHours: 72,
  silence: {
    lastEventAt: '2026-11-22',
    quietSeconds: 60,
    missedRows: 0,
    missedCompanies: 0,
    missedAt: null,
  },
  refused: null,
  audit: null,
  delays: { row: { p50: 0.02, p99: 0.1 }, record: { p50: 0.2, p99: 1 } },
  intervalShortfall: { events: 0, readings: 0 },
  issues: [],
  acknowledgedIssues: 0,
  watch: { lookedAt: '2026-11-22', lookedSecondsAgo: 30, open: [], acknowledged: [], unsent: null },
};
const scheduled = { state: 'active', isWanted: true, reason: null } as const;
export const temporal: TemporalHealth = {
  idle: [],
  absent: null,
  schedules: [
    { ...scheduled, name: 'full', next: '2026-11-23T03:00:00Z', intervalSeconds: 86_400 },
    { ...scheduled, name: 'reconcile', next: null, intervalSeconds: 3_600 },
  ],
  openGroups: 0,
  lateGroups: 0,
  stalledGroups: 0,
  stuckWorkflows: 0,
  foundAway: false,
  certificate: null,
};
export const away = { away: 'it does not answer', todo: 'Bring it up.' };
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

const refused = {
  reasons: { 'signature-wrong': 3 },
  since: '2026-11-22 01:00:00+00',
  until: '2026-11-22 01:15:00+00',
  untilSecondsAgo: 30,
  lastedSeconds: 900,
  unread: 3,
};

const schema = { known: 1, applied: 1, floor: 1 };

export const health = (a: Partial<WarehouseHealth> = {}, b: Partial<TemporalHealth> = {}): Health => ({
  warehouse: { ...warehouse, ...a },
  temporal: { ...temporal, ...b },
  schema,
});

/** A state that leads to one finding. */
export interface Ill {
  /** Its entry in the catalogue. */
  readonly type: string;
  readonly state: Health;
  readonly side: 'warehouse' | 'temporal';
}

const inWarehouse = (type: string, state: Partial<WarehouseHealth>): Ill => ({
  type,
  state: health(state),
  side: 'warehouse',
});
const inTemporal = (type: string, state: Partial<TemporalHealth>): Ill => ({
  type,
  state: health({}, state),
  side: 'temporal',
});

const parked = (code: FailureCode, events = 0, parts = 0): Partial<WarehouseHealth> => ({
  parked: [{ reason: 'no', owners: 0, since: '2026-11-22', nextAttemptAt: null, code, events, parts }],
});
const watch = (more: Partial<WarehouseHealth['watch']>): Partial<WarehouseHealth> => ({
  watch: { ...warehouse.watch, ...more },
});
const runs = (kind: 'full' | 'reconcile', more: object): Partial<WarehouseHealth> => ({
  runs: { ...warehouse.runs, [kind]: { ...completed, ...more } },
});
const unwell = (last: Partial<LastRun>) => runs('full', { last: { ...complete, ...last } });
const unloaded = (running: number) => ({ loaded: false, ...runs('full', { running, last: null }) });
const certificate = { expiresAt: '2026-12-01T00:00:00Z', secondsLeft: 9 * 86_400 };
const audit = { differences: 1_265, finishedAt: '2026-11-22 01:00:00+00' };

/** Each finding at least once, except findings about an unreachable server. */
export const ills: readonly Ill[] = [
  inTemporal('WorkersGone', { idle: ['events', 'watch'] }),
  inTemporal('WorkersGone', { absent: 'build 2' }),
  inTemporal('QueueIdle', { idle: ['checks'] }),
  inTemporal('WorkflowsStuck', { stuckWorkflows: 1 }),
  inTemporal('CertificateExpires', { certificate }),
  inTemporal('SchedulePaused', { schedules: [paused] }),
  inTemporal('ScheduleGone', { schedules: [{ ...paused, state: 'absent' }] }),
  inTemporal('EventsStalled', { lateGroups: 2, stalledGroups: 1 }),
  inTemporal('EventsLate', { lateGroups: 2 }),
  { type: 'ServersSlow', state: { ...health(), slow: ['Temporal'] }, side: 'temporal' },
  inWarehouse('HeartbeatStopped', watch({ lookedSecondsAgo: 301 })),
  inWarehouse('NotificationsFailing', watch({ unsent: { seconds: 601, error: '4' } })),
  inWarehouse('KeyRefused', parked('SERVICE_KEY_REFUSED')),
  inWarehouse('ServiceDown', parked('SERVICE_OUTAGE')),
  inWarehouse('Parked', parked('SERVICE_ACCESS_DENIED', 1, 2)),
  inWarehouse('EventsStalled', { oldestDueSeconds: 901 }),
  inWarehouse('EventsLate', { oldestDueSeconds: 61 }),
  inWarehouse('Silent', { silence: quiet }),
  inWarehouse('ChangesMissed', { silence: missed }),
  inWarehouse('SignaturesRefused', { refused }),
  inWarehouse('DeliveriesRefused', { refused: { ...refused, since: '2026-11-21 23:00:00+00' } }),
  inWarehouse('AuditDiffers', { audit }),
  inWarehouse('EventsDead', { dead: 1 }),
  inWarehouse('EventsMissing', { missingLately: 1 }),
  inWarehouse('NotLoaded', unloaded(0)),
  inWarehouse('Loading', unloaded(1)),
  inWarehouse('RunUnwell', unwell({ state: 'partial', error: 'x' })),
  inWarehouse('RunUnwell', unwell({ state: 'failed' })),
  inWarehouse('RunUnwell', unwell({ state: 'suspect' })),
  inWarehouse('RunOverdue', runs('full', longAgo)),
  inWarehouse('RunStalled', runs('reconcile', stalled)),
  inWarehouse('Decide', { undecidedDeletes: 2 }),
  inWarehouse('RecordsRefused', { rejectedRecords: 2 }),
];
