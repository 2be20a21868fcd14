import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { describeAudit } from '../../cli/commands/audit.ts';
import { describeRun } from '../../cli/commands/backfill.ts';
import { describeChecks, describeStatus } from '../../cli/commands/health.ts';
import { failureTypes } from '../../contract/failures.ts';
import type { CompanyProgress, RunProgress } from '../../db/read/runs.ts';
import type { WarehouseStatus } from '../../db/read/status.ts';
import { addTo, emptyReport } from '../../operations/audit/tally.ts';
import type { Check } from '../../operations/doctor/check.ts';
import { away, health, ills, warehouse } from '../support/health-states.ts';

/** What commands print for people, from given results. The golden files are to be read, not only compared. */

beforeAll(() => void vi.useFakeTimers({ now: Date.parse('2026-11-22T02:00:00Z'), toFake: ['Date'] }));
afterAll(() => void vi.useRealTimers());

/** Compares with a golden file what is printed of each case. */
async function expectPrinted(file: string, cases: Readonly<Record<string, readonly string[]>>) {
  const sections = Object.entries(cases).map(([name, lines]) => [`# ${name}`, ...lines].join('\n'));
  await expect(`${sections.join('\n\n')}\n`).toMatchFileSnapshot(`golden/${file}`);
}

const run = (more: Partial<RunProgress> = {}): RunProgress => ({
  kind: 'full',
  state: 'running',
  error: null,
  workflowId: null,
  seconds: 60,
  companies: 10,
  companiesDone: 0,
  rows: 12_345,
  running: [],
  failed: [],
  ...more,
});
const company = (more: Partial<CompanyProgress> = {}): CompanyProgress => ({
  name: 'Acme',
  resource: 'documents',
  step: 3,
  done: 250,
  of: 1_000,
  unit: 'records',
  ...more,
});
const ofMeters = (done: number, of: number) =>
  company({ resource: 'intervals', step: 5, unit: 'meters', done, of });
const longName = 'A company with a name that goes on and on';

test('the progress of a run', async () => {
  const cases: Readonly<Record<string, RunProgress>> = {
    'not started': run({ state: null }),
    'no company is done': run(),
    'with the remaining time': run({ companiesDone: 4 }),
    'a reconcile': run({ kind: 'reconcile', companiesDone: 4 }),
    complete: run({ state: 'complete', companiesDone: 10 }),
    'complete, long ago': run({ state: 'complete', companiesDone: null }),
    // How many readings the companies in progress have is unknown, so there is no remaining time.
    'all companies have begun': run({ companies: 23, companiesDone: 22, running: [ofMeters(0.3, 1)] }),
    'one company waits': run({ companies: 23, companiesDone: 20, running: [ofMeters(0.3, 1)] }),
    'several companies': run({
      running: [
        company(),
        company({ done: 0, of: null }),
        ofMeters(2.5, 40),
        ofMeters(40, 40),
        ofMeters(0, 0),
      ],
    }),
    'more than fits': run({
      running: Array.from({ length: 12 }, () => company({ name: longName })),
      failed: [{ name: longName, resource: 'meters', state: 'failed', error: 'SERVICE_ACCESS_DENIED: no' }],
    }),
  };
  const printed = Object.entries(cases).map(([name, one]) => [name, describeRun(one)] as const);
  await expectPrinted('runs.txt', Object.fromEntries(printed));
});

const quiet: WarehouseStatus = {
  events: { pending: 0, applied: 1_234, superseded: 5, ignored: 0, dead: 0, missing: 0 },
  oldestPendingSeconds: 0,
  lastEventSecondsAgo: 60,
  silence: warehouse.silence,
  backfills: {
    running: 0,
    last: { runId: 'r', state: 'complete', finishedAt: '2026-11-22 01:00:00+00', error: null },
  },
  reconciles: { running: 1, last: null },
  waiting: [],
  parked: [],
  intervalShortfall: { events: 0, readings: 0 },
  rejectedRecords: 0,
  unreadableValues: 0,
  quarantinedDeletes: 0,
  keptDeletes: 0,
  issues: { error: 0, warning: 0, info: 0, acknowledged: 0 },
  rows: { companies: 1, documents: 20, usage_data: 10_001, intervals: 0 } as WarehouseStatus['rows'],
};
const parked = {
  code: 'SERVICE_ACCESS_DENIED',
  reason: 'the service answered 403',
  events: 2,
  owners: 1,
  since: '2026-11-22 00:00:00+00',
  nextAttemptAt: '2026-11-22 03:00:00+00',
} as const;
const troubled: WarehouseStatus = {
  ...quiet,
  events: { ...quiet.events, pending: 7 },
  oldestPendingSeconds: 7_200,
  waiting: [{ ...parked, code: 'RECORD_NOT_SHOWN', events: 1 }, parked],
  parked: [{ ...parked, backfillParts: 3, operator: failureTypes.SERVICE_ACCESS_DENIED.operator }],
  intervalShortfall: { events: 1, readings: 96 },
  unreadableValues: 12,
  keptDeletes: 3,
  issues: { error: 1, warning: 20, info: 0, acknowledged: 2 },
};

test('the status of a deployment', async () => {
  const stateOf = (name: string) => ills.find(({ type }) => type === name)?.state ?? health();
  const dead = { name: 'EventsDead', key: '' };
  const open = { ...dead, openedAt: '2026-11-22 01:00:00+00', notifiedAt: '2026-11-22 01:01:00+00' };
  const known = {
    ...dead,
    by: 'ada',
    at: '2026-11-22 01:30:00+00',
    note: 'fixed in May',
    counts: { events: 1 },
  };
  await expectPrinted('status.txt', {
    'in sync': describeStatus(health(), quiet),
    'with exact counts': describeStatus(health(), quiet, true),
    'everything that can be said of the warehouse': describeStatus(stateOf('Parked'), troubled),
    'Postgres is away': describeStatus({ ...health(), warehouse: away, schema: null }, undefined),
    'no worker runs': describeStatus(stateOf('WorkersGone'), undefined),
    'a schedule is paused': describeStatus(stateOf('SchedulePaused'), undefined),
    'an open alarm': describeStatus(
      health({ dead: 1, watch: { ...warehouse.watch, open: [open] } }),
      undefined,
    ),
    'an acknowledged finding': describeStatus(
      health({ dead: 1, watch: { ...warehouse.watch, open: [open], acknowledged: [known] } }),
      undefined,
    ),
  });
});

test('the checks of the doctor', async () => {
  const checks: Check[] = [
    { name: 'API key', state: 'ok', saw: 'the service accepts it', todo: null },
    { name: 'webhooks', state: 'fail', saw: 'disabled', todo: 'Run metersync webhooks enable.' },
    { name: 'receiver', state: 'not checked', saw: 'no probe was sent', todo: 'Set RECEIVER_PUBLIC_URL.' },
    { name: 'clock', state: 'warn', saw: '200.0 s from the clock of the service', todo: 'Let NTP set it.' },
  ];
  await expectPrinted('doctor.txt', { 'four checks': describeChecks(checks) });
});

test('the report of an audit', async () => {
  const report = emptyReport();
  addTo(report, 'companies', [], 2);
  addTo(report, 'usageData', [], 1_200, 1);
  addTo(
    report,
    'documents',
    [
      { id: 'd1', state: 'missing' },
      { id: 'd2', state: 'extra' },
      { id: 'd3', state: 'kept' },
      {
        id: 'd4',
        state: 'different',
        fields: [
          { field: 'note', service: '"changed"', warehouse: null },
          { field: 'text', service: 'x'.repeat(80), warehouse: 'y' },
        ],
      },
      { id: 'c1', state: 'suspect', reason: '1 distinct record of a total of 300' },
    ],
    40,
  );
  addTo(report, 'meters', [{ id: 'c2', state: 'unread', reason: 'SERVICE_NOT_FOUND: 404' }], 0);
  const event = {
    id: 'msg_1',
    type: 'document.updated.v2',
    occurredAt: null,
    receivedAt: '2026-11-22 01:00:00+00',
  };
  const explained = report.examples.map((example) => ({
    ...example,
    ...(example.id === 'd1' ? { refused: 'a number beyond numeric' } : {}),
    events: example.id === 'd4' ? [{ ...event, outcome: 'pending' as const }] : [],
  }));
  const decisions = [
    { runId: 'r', state: 'undone' as const, by: null, at: '2026-11-22 01:00:00+00', rows: 1 },
  ];
  const full = { ...report, examples: explained, kept: { rows: 1, decisions } };
  await expectPrinted('audit.txt', {
    'of everything': describeAudit(full),
    'of some resources': describeAudit(full, { resource: ['usageData'] }),
    'since a time, without changes': describeAudit(emptyReport(), { since: '2026-11-22' }),
  });
});
