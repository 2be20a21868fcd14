import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { opensAlarms, seenIn } from '../../health/alarms.ts';
import { type FindingType, verdictWords, wordOfSeverity } from '../../health/finding-type.ts';
import { alarmNames, alarmTypes, findingTypes, isAlarmName, rankOf } from '../../health/findings.ts';
import type { Health, LateWork, WarehouseHealth } from '../../health/measured.ts';
import { headline, verdictOf, verdictStatus } from '../../health/verdict.ts';
import { away, health, ills, paused, temporal, warehouse } from '../support/health-states.ts';

const noPostgres: Health = { warehouse: away, temporal, schema: null };
const noTemporal: Health = { ...health(), temporal: away };
const noneConfigured = { away: 'no Temporal is running here', todo: 'Run metersync start.' };
const nothingRuns: Health = { ...health(), temporal: { ...noneConfigured, nothingRuns: true } };
const slowPostgres = { away: 'Postgres at x is slow', todo: 'Wait.', brief: 'Postgres is slow' };

const full = (more: object): Partial<WarehouseHealth> => ({
  runs: { ...warehouse.runs, full: { ...warehouse.runs.full, ...more } },
});
const failed = { last: { ...warehouse.runs.full.last, state: 'failed' } };
const suspect = { ...warehouse.runs.full.last, state: 'suspect', awaitsDecision: true };
const awaitDecision = Object.fromEntries(
  Object.entries(warehouse.runs).map(([kind, runs]) => [kind, { ...runs, last: suspect }]),
) as unknown as WarehouseHealth['runs'];
const audit = { differences: 1_265, finishedAt: '2026-11-22 01:00:00+00' };
const underWay = (startedAt: string) =>
  full({ running: 1, underWay: { runId: 'r', startedAt, progressAt: startedAt, progressSecondsAgo: 1 } });
const silence = {
  ...warehouse.silence,
  missedRows: 58,
  missedCompanies: 2,
  missedAt: '2026-11-21 01:00:00+00',
  lastEventAt: '2026-11-22 01:00:00+00',
};
const quiet = { ...silence, lastEventAt: '2026-11-20 01:00:00+00' };
const silent = { ...warehouse.silence, quietSeconds: 100 * 3_600, lastEventAt: '2026-11-20 01:00:00+00' };
const refused = {
  reasons: { 'signature-wrong': 3 },
  since: '2026-11-21 01:00:00+00',
  until: '2026-11-21 01:12:00+00',
  untilSecondsAgo: 30,
  lastedSeconds: 60,
  unread: 773,
};
const allRefused = { ...refused, since: '2026-11-23 01:00:00+00' };
const oneRefused = { ...allRefused, reasons: { 'signature-wrong': 1 }, unread: 1 };
const known = (name: string, counts: Record<string, number>) => ({
  ...warehouse.watch,
  acknowledged: [{ name, key: '', by: 'ada', at: '2026-11-22 01:01:00+00', note: 'a test', counts }],
});

/** Work that has been due for some time: 8,166 events of documents and 2 of connections. */
const due = (minutes: number, late: LateWork | null) =>
  health({
    pending: {
      ...warehouse.pending,
      connection: { ...warehouse.pending.connection, parked: 2 },
      document: { ...warehouse.pending.document, due: 8_000, waiting: 166 },
    },
    oldestDueSeconds: minutes * 60,
    late,
  });
const notShown = { code: 'RECORD_NOT_SHOWN', events: 8_000 } as const;
const inSandbox = (name: string) => {
  const found = ills.find(({ type }) => type === name);
  return { ...(found?.state ?? health()), sandbox: true };
};

/** Deployments by what distinguishes them. The golden file has what is said of each. */
const states: Readonly<Record<string, Health>> = {
  'in sync': health(),
  ...Object.fromEntries(
    ills.map(({ type, state }, at) => {
      const before = ills.slice(0, at).filter((other) => other.type === type).length;
      return [before === 0 ? type : `${type}, case ${before + 1}`, state];
    }),
  ),
  'Postgres is away': noPostgres,
  'Temporal is away': noTemporal,
  'both are away': { warehouse: away, temporal: away, schema: null },
  'an older schema': { ...noPostgres, schema: { known: 2, applied: 1, floor: 1 } },
  'a newer schema that accepts writes': { ...health(), schema: { known: 1, applied: 2, floor: 1 } },
  'a pooler in between': { ...noPostgres, schema: { known: 1, applied: 1, floor: 1 } },
  'Postgres is slow': { ...health(), warehouse: slowPostgres },
  'both answer slowly': { ...health(), slow: ['Postgres', 'Temporal'] },
  'no Temporal is configured': nothingRuns,
  'the watch found Postgres away': health(
    { watch: { ...warehouse.watch, lookedSecondsAgo: 540 } },
    { foundAway: true },
  ),
  'work is stuck for 14 minutes': due(14, { settledSecondsAgo: 900, reason: notShown }),
  'work is stuck for 16 minutes': due(16, { settledSecondsAgo: null, reason: notShown }),
  'work waits for its first attempt for 2 minutes': due(2, { settledSecondsAgo: 1_200, reason: null }),
  'work waits for its first attempt for 16 minutes': due(16, { settledSecondsAgo: 1_200, reason: null }),
  'late work that progresses': due(14, { settledSecondsAgo: 3, reason: notShown }),
  'work that is due for half a minute': due(0.5, null),
  'several findings': health({ undecidedDeletes: 179, dead: 2, rejectedRecords: 1 }),
  'several tickets': health({ ...full(failed), undecidedDeletes: 61, missingLately: 1, audit }),
  'deletions of both kinds of runs': health({ undecidedDeletes: 179, runs: awaitDecision }),
  'deletions with their bills': health({
    undecidedDeletes: 179,
    undecided: {
      byResource: [
        { resource: 'documents', rows: 70 },
        { resource: 'usageData', rows: 109 },
      ],
      companies: 1,
      listedAsDeleted: 70,
      cost: ['526,839.17 USD'],
    },
  }),
  'a schedule that no setting asks for': health(
    {},
    { schedules: [{ ...paused, state: 'absent', isWanted: false }] },
  ),
  'changes without an event, and events again': health({ silence }),
  'changes without an event, and none since': health({ silence: quiet }),
  'changes without an event, and waiting groups': health({ silence: quiet }, { lateGroups: 1 }),
  'changes without an event, and no Temporal': { ...health({ silence: quiet }), temporal: away },
  'a missed change and deletions': health({ silence, undecidedDeletes: 61 }),
  'silence while groups wait': health({ silence: silent }, { openGroups: 1 }),
  'an audit and an earlier backfill': health({ audit, ...underWay('2026-11-22 00:59:00+00') }),
  'an audit and a later backfill': health({ audit, ...underWay('2026-11-22 01:00:01+00') }),
  'refused deliveries among accepted ones': health({ refused }),
  'refused deliveries, which are over': health({ refused: { ...refused, untilSecondsAgo: 3_600 } }),
  'refused deliveries, replaced since': health({ refused: { ...refused, unread: 0 } }),
  'refused deliveries for 601 s': health({ refused: { ...refused, lastedSeconds: 601 } }),
  'refused deliveries for 601 s, over': health({
    refused: { ...refused, lastedSeconds: 601, untilSecondsAgo: 121 },
  }),
  'all deliveries refused': health({ refused: allRefused }),
  'all deliveries refused, the last 601 s ago': health({ refused: { ...allRefused, untilSecondsAgo: 601 } }),
  'one refused delivery': health({ refused: oneRefused }),
  'an acknowledged finding': health({ dead: 2, watch: known('EventsDead', { events: 2 }) }),
  'an acknowledged finding whose count rose': health({ dead: 3, watch: known('EventsDead', { events: 2 }) }),
  'an acknowledged finding and another': health({
    dead: 2,
    rejectedRecords: 1,
    watch: known('EventsDead', { events: 2 }),
  }),
  'an acknowledged finding that stops everything': health({
    oldestDueSeconds: 901,
    watch: known('EventsStalled', {}),
  }),
  'an open alarm': health({
    dead: 1,
    watch: {
      ...warehouse.watch,
      open: [
        { name: 'EventsDead', key: '', openedAt: '2026-11-22 01:01:00+00', notifiedAt: null },
        { name: 'RunUnwell', key: 'kind=reconcile,state=failed', openedAt: '2026-11-22', notifiedAt: null },
      ],
    },
  }),
  'the key is refused in the sandbox': inSandbox('KeyRefused'),
  'signatures are refused in the sandbox': inSandbox('SignaturesRefused'),
  'the sandbox fails': inSandbox('ServiceDown'),
};

/** The verdict of a state, its findings, and what the watch makes of them. */
function said(state: Health): string[] {
  const verdict = verdictOf(state);
  const { raised, unknown } = seenIn(state);
  return [
    headline(verdict),
    ...verdict.findings.flatMap(({ word, alarm, key, name, saw, todo, open, acknowledged }) => [
      `  ${word} (${[alarm ?? 'no alarm', key].filter((part) => part !== '').join(' ')}), ${name}: ${saw}`,
      `    ${todo}`,
      ...(open === null ? [] : [`    open since ${open.since}`]),
      ...(acknowledged === null ? [] : [`    acknowledged by ${acknowledged.by}: ${acknowledged.note}`]),
    ]),
    ...(raised.length === 0 ? [] : [`  raised: ${raised.map(({ alarm }) => alarm).join(', ')}`]),
    ...(unknown.size === 0 ? [] : [`  not judged: ${[...unknown].join(', ')}`]),
  ];
}

test('the verdict, the findings and the alarms of each state are as in the golden file', async () => {
  const sections = Object.entries(states).map(([name, state]) => [`# ${name}`, ...said(state)].join('\n'));
  await expect(`${sections.join('\n\n')}\n`).toMatchFileSnapshot('golden/verdicts.txt');
});

describe.each(ills)('$type', ({ type, state, side }) => {
  const { name, severity } = findingTypes[type] as FindingType;
  const word = wordOfSeverity[severity];

  test('is one finding, which decides the verdict', () => {
    const alarm = isAlarmName(type) ? type : null;
    const verdict = verdictOf(state);
    expect(verdict).toMatchObject({ word, findings: [{ word, alarm, open: null }] });
    const [{ key = '', name: said, todo } = {}] = verdict.findings;
    if (key === '') expect(said).toBe(name);
    expect(todo).not.toMatch(/`|\]\(/);
    const raised = seenIn(state).raised.map((one) => [one.alarm, one.key]);
    expect(raised).toEqual(alarm === null || alarm === 'HeartbeatStopped' ? [] : [[type, key]]);
  });

  test('never leads to another verdict than unknown or broken if the other server cannot be reached', () => {
    const other = side === 'warehouse' ? { temporal: away } : { warehouse: away, schema: null };
    expect(verdictOf({ ...state, ...other }).word).toBe(word === 'Broken' ? 'Broken' : 'Unknown');
  });
});

test('each finding of the catalogue is among these cases, or is about an unreachable server', () => {
  const judged = Object.keys(findingTypes).filter((name) => findingTypes[name]?.judge !== undefined);
  const servers = ['WarehouseDown', 'TemporalDown', 'SchemaMismatch'];
  expect(new Set([...servers, ...ills.map(({ type }) => type)])).toEqual(new Set(judged));
});

test('each finding for which somebody has to act within days has its place in their order', () => {
  const tickets = alarmNames.filter(
    (name) => alarmTypes[name].severity === 'ticket' && alarmTypes[name].judge,
  );
  expect(tickets.filter((name) => rankOf(name) === -1)).toEqual([]);
});

test('the worst of several findings comes first, and is the verdict', () => {
  const some = fc.subarray([...ills.filter(({ side }) => side === 'warehouse')], { minLength: 1 });
  fc.assert(
    fc.property(some, (chosen) => {
      const merged = Object.assign({}, ...chosen.map(({ state }) => changedIn(state)));
      const { word, findings } = verdictOf(health(merged));
      const ranks = findings.map((finding) => verdictWords.indexOf(finding.word));
      expect(ranks).toEqual(ranks.toSorted((a, b) => b - a));
      expect(word).toBe(findings[0]?.word);
    }),
  );
});

/** The parts of a state that differ from a deployment without a fault. */
const changedIn = (state: Health): object =>
  Object.fromEntries(
    Object.entries(state.warehouse).filter(
      ([key, value]) => value !== warehouse[key as keyof WarehouseHealth],
    ),
  );

test('the exit status distinguishes what needs a person, what is broken and what is unknown', () => {
  expect(verdictStatus).toEqual({ 'In sync': 0, 'Catching up': 0, 'Needs you': 3, Broken: 4, Unknown: 5 });
});

test('a worker can open an alarm only if it reaches both servers and takes the work of the watch', () => {
  expect(opensAlarms('EventsDead', health())).toBe(true);
  expect(opensAlarms('EventsDead', health({}, { idle: ['events', 'watch'] }))).toBe(false);
  for (const state of [nothingRuns, noTemporal, noPostgres])
    expect(opensAlarms('WorkersGone', state)).toBe(false);
});
