import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { opensAlarms, seenIn } from '../../health/alarms.ts';
import { type FindingType, verdictWords, wordOfSeverity } from '../../health/finding-type.ts';
import { alarmNames, alarmTypes, findingTypes, isAlarmName, placeOf } from '../../health/findings.ts';
import type { Health, WarehouseHealth } from '../../health/measured.ts';
import { headline, type Verdict, verdictOf, verdictStatus } from '../../health/verdict.ts';
import { away, health, ills, paused, temporal, warehouse } from '../support/health-states.ts';

const noPostgres: Health = { warehouse: away, temporal, schema: null };
const noTemporal: Health = { ...health(), temporal: away };
const neither: Health = { warehouse: away, temporal: away, schema: null };

test('a deployment without a fault is in sync and raises no alarm', () => {
  expect(verdictOf(health())).toEqual({ word: 'In sync', findings: [] });
  expect(headline(verdictOf(health()))).toBe('In sync');
  expect(seenIn(health())).toEqual({ raised: [], unknown: new Set() });
});

describe.each(ills)('$type: $saw', ({ type, state, side, saw, todo, key }) => {
  const { name, severity } = findingTypes[type] as FindingType;
  const word = wordOfSeverity[severity];

  test('is one finding, which decides the verdict and says what to do', () => {
    const verdict = verdictOf(state);
    const alarm = isAlarmName(type) ? type : null;
    const said = { saw: expect.stringMatching(saw), todo: expect.stringMatching(todo) };
    expect(verdict).toMatchObject({ word, findings: [{ word, ...said, alarm, key, open: null }] });
    expect(verdict.findings).toHaveLength(1);
    const [only] = verdict.findings;
    if (key === '') expect(only?.name).toBe(name);
    expect(headline(verdict)).toBe(`${word}: ${only?.brief}`);
    expect(`${headline(verdict)}, and 2 more`.split(' ').length).toBeLessThanOrEqual(12);
    expect(only?.brief, 'it says more than the name').not.toBe(name);
    expect(only?.todo).not.toMatch(/`|\]\(/);
    const raised = seenIn(state).raised.map((one) => [one.alarm, one.key]);
    expect(raised).toEqual(alarm === null || alarm === 'HeartbeatStopped' ? [] : [[type, key]]);
  });

  test('never leads to another verdict than unknown or broken if the other server cannot be reached', () => {
    const other = side === 'warehouse' ? { temporal: away } : { warehouse: away, schema: null };
    expect(verdictOf({ ...state, ...other }).word).toBe(word === 'Broken' ? 'Broken' : 'Unknown');
  });
});

test.each([
  ['SignaturesRefused', 'Restart metersync start'],
  ['KeyRefused', 'restart metersync start'],
  ['ServiceDown', 'restart metersync start'],
])(
  'the advice of %s fits the sandbox, which has neither a key nor a secret in the settings',
  (name, advice) => {
    const state = ills.find(({ type }) => type === name)?.state ?? health();
    const [finding] = verdictOf({ ...state, sandbox: true }).findings;
    expect(finding?.todo).toContain(advice);
    expect(finding?.todo).not.toMatch(/SERVICE_|WEBHOOK_SECRETS|operator of the service/);
    expect(seenIn({ ...state, sandbox: true }).raised[0]?.todo).toBe(finding?.todo);
  },
);

test('each finding of the catalogue is among these cases, or is about an unreachable server', () => {
  const judged = Object.keys(findingTypes).filter((name) => findingTypes[name]?.judge !== undefined);
  const servers = ['WarehouseDown', 'TemporalDown', 'SchemaMismatch'];
  expect(new Set([...servers, ...ills.map(({ type }) => type)])).toEqual(new Set(judged));
});

test.each([
  ['Postgres', noPostgres, 'Unknown', ['WarehouseDown']],
  ['Temporal', noTemporal, 'Unknown', ['TemporalDown']],
  ['both', neither, 'Broken', ['WarehouseDown', 'TemporalDown']],
  [
    'a schema that fits',
    { ...noPostgres, schema: { known: 2, applied: 1, floor: 1 } },
    'Unknown',
    ['SchemaMismatch'],
  ],
  [
    'a pooler between',
    { ...noPostgres, schema: { known: 1, applied: 1, floor: 1 } },
    'Unknown',
    ['WarehouseDown'],
  ],
] as const)('the verdict without %s is Unknown or Broken, and not Needs you', (_, state, word, alarms) => {
  const { word: heard, findings } = verdictOf(state);
  expect(heard).toBe(word);
  expect(findings.map(({ alarm }) => alarm)).toEqual(alarms);
  expect(verdictStatus[heard]).toBe(word === 'Broken' ? 4 : 5);
});

test('a running watch is not reported as stopped after an outage of Postgres', () => {
  const watch = { ...warehouse.watch, lookedSecondsAgo: 540 };
  const verdict = verdictOf(health({ watch }, { foundAway: true }));
  const { findings } = verdict;
  expect(headline(verdict)).toBe('Catching up: Postgres was unreachable and answers again');
  expect(findings).toMatchObject([
    { name: 'watch', saw: expect.stringMatching(/^Postgres was unreachable/) },
  ]);
});

test('an alarm whose source is unreachable keeps its state', () => {
  expect(seenIn(noTemporal).unknown).toContain('WorkersGone');
  expect(seenIn(noTemporal).unknown).not.toContain('EventsDead');
  expect(seenIn(noPostgres).unknown).toContain('EventsDead');
});

test('a newer schema that accepts writes of this code is a finding that says to upgrade', () => {
  const { word, findings } = verdictOf({ ...health(), schema: { known: 1, applied: 2, floor: 1 } });
  expect(word).toBe('Needs you');
  expect(findings).toMatchObject([{ name: 'schema', todo: 'Upgrade this metersync.' }]);
});

test('the worst of several findings comes first, and is the verdict', () => {
  const states = ills.filter(({ side }) => side === 'warehouse');
  fc.assert(
    fc.property(fc.subarray(states, { minLength: 1 }), (some) => {
      const merged = Object.assign({}, ...some.map(({ state }) => changedIn(state)));
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

test('deletions that are held back are one finding, whichever runs found them', () => {
  const suspect = { ...warehouse.runs.full.last, state: 'suspect', awaitsDecision: true } as const;
  const runs = {
    full: { ...warehouse.runs.full, last: suspect },
    reconcile: { ...warehouse.runs.reconcile, last: suspect },
  } as Partial<typeof warehouse>['runs'];
  const { findings } = verdictOf(health({ undecidedDeletes: 179, ...(runs && { runs }) }));
  expect(findings.map(({ alarm }) => alarm)).toEqual(['Decide']);
  const undecided = {
    byResource: [
      { resource: 'documents', rows: 70 },
      { resource: 'usageData', rows: 109 },
    ],
    companies: 1,
    listedAsDeleted: 70,
    cost: ['526,839.17 USD'],
  };
  const [decide] = verdictOf(health({ undecidedDeletes: 179, undecided })).findings;
  expect(decide?.saw).toMatch(
    /^70 bills and 109 rows of usage of 1 company \(526,839\.17 USD; the service lists 70 rows as deleted\) disappeared/,
  );
});

test('a missing schedule is not a fault if its setting is none', () => {
  const schedules = [{ ...paused, state: 'absent' as const, isWanted: false }];
  expect(verdictOf(health({}, { schedules })).word).toBe('In sync');
});

describe('changes that came without an event', () => {
  const silence = {
    ...warehouse.silence,
    missedRows: 58,
    missedCompanies: 2,
    missedAt: '2026-11-21 01:00:00+00',
    lastEventAt: '2026-11-22 01:00:00+00',
  };

  test('are information, without an alarm, once events arrive again', () => {
    const verdict = verdictOf(health({ silence }));
    expect([verdict.word, headline(verdict)]).toEqual(['In sync', 'In sync']);
    expect(verdict.findings).toMatchObject([
      {
        name: 'missed changes',
        word: 'In sync',
        todo: expect.stringMatching(/^Nothing: the data is stored/),
      },
    ]);
    expect(seenIn(health({ silence })).raised).toEqual([]);
    const both = verdictOf(health({ silence, undecidedDeletes: 61 }));
    expect(headline(both)).toBe('Needs you: 61 deletions to decide');
    expect(both.findings).toHaveLength(2);
  });

  test('need a person while no event has come since', () => {
    const quiet = { ...silence, lastEventAt: '2026-11-20 01:00:00+00' };
    expect(headline(verdictOf(health({ silence: quiet })))).toBe(
      'Needs you: 58 changes came without an event',
    );
  });

  test('are not judged while accepted events wait to be recorded, or if nobody knows whether they do', () => {
    const quiet = { ...silence, lastEventAt: '2026-11-20 01:00:00+00' };
    for (const state of [
      health({ silence: quiet }, { lateGroups: 1 }),
      { ...health({ silence: quiet }), temporal: away },
    ]) {
      expect(verdictOf(state).findings.map(({ alarm }) => alarm)).not.toContain('ChangesMissed');
      expect(seenIn(state).unknown).toContain('ChangesMissed');
    }
  });
});

test('silence is not judged while accepted events wait to be recorded', () => {
  const quiet = { ...warehouse.silence, quietSeconds: 100 * 3_600, lastEventAt: '2026-11-20 01:00:00+00' };
  const named = ({ findings }: Verdict) => findings.map(({ alarm }) => alarm);
  expect(named(verdictOf(health({ silence: quiet })))).toContain('Silent');
  const waiting = health({ silence: quiet }, { openGroups: 1 });
  expect(named(verdictOf(waiting))).not.toContain('Silent');
  expect(seenIn(waiting).unknown).toContain('Silent');
  expect(seenIn(health({}, { openGroups: 1 })).unknown).not.toContain('Silent');
});

test('without any Temporal no worker runs, so the verdict is Broken and no worker can open an alarm', () => {
  const nowhere = {
    away: 'no Temporal is running here',
    todo: 'Run metersync start.',
    nothingRuns: true,
  } as const;
  const state: Health = { ...health(), temporal: nowhere };
  const verdict = verdictOf(state);
  expect([verdict.word, verdictStatus[verdict.word]]).toEqual(['Broken', 4]);
  expect(verdict.findings).toMatchObject([{ alarm: 'WorkersGone', saw: nowhere.away, todo: nowhere.todo }]);
  expect(opensAlarms('WorkersGone', state)).toBe(false);
  expect(opensAlarms('EventsDead', health({}, { idle: ['events', 'watch'] }))).toBe(false);
  expect(opensAlarms('WorkersGone', noPostgres)).toBe(false);
  expect(opensAlarms('EventsDead', health())).toBe(true);
});

test('a slow Postgres is called slow, and not down', () => {
  const slow = {
    away: 'Postgres at x is slow: no answer within 10 s',
    todo: 'Wait.',
    brief: 'Postgres is slow',
  };
  expect(headline(verdictOf({ ...health(), warehouse: slow }))).toBe('Unknown: Postgres is slow');
  expect(headline(verdictOf({ ...health(), slow: ['Postgres', 'Temporal'] }))).toBe(
    'Catching up: Postgres and Temporal answer slowly',
  );
});

test('the first line of a verdict has the worst finding and the number of others', () => {
  const ill = health({ undecidedDeletes: 179, dead: 2, rejectedRecords: 1 });
  expect(headline(verdictOf(ill))).toBe('Needs you: 179 deletions to decide, and 2 more');
});

test('findings of one word are ordered by what has to be done, and each ticket has its place', () => {
  const failed = { ...warehouse.runs.full.last, state: 'failed' } as NonNullable<
    typeof warehouse.runs.full.last
  >;
  const ill = health({
    runs: { ...warehouse.runs, full: { ...warehouse.runs.full, last: failed } },
    undecidedDeletes: 61,
    missingLately: 1,
    audit: { differences: 2, finishedAt: '2026-11-22 01:00:00+00' },
  });
  expect(verdictOf(ill).findings.map(({ alarm }) => alarm)).toEqual([
    'Decide',
    'RunUnwell',
    'AuditDiffers',
    'EventsMissing',
  ]);
  const tickets = alarmNames.filter(
    (name) => alarmTypes[name].severity === 'ticket' && alarmTypes[name].judge,
  );
  expect(tickets.filter((name) => placeOf(name) === -1)).toEqual([]);
});

test('differences of an audit need nobody while a backfill that began later is under way', () => {
  const audit = { differences: 1_265, finishedAt: '2026-11-22 01:00:00+00' };
  const under = (startedAt: string) => ({
    audit,
    runs: {
      ...warehouse.runs,
      full: {
        ...warehouse.runs.full,
        running: 1,
        underWay: { runId: 'r', startedAt, progressAt: startedAt, progressSecondsAgo: 1 },
      },
    },
  });
  expect(headline(verdictOf(health({ audit })))).toBe('Needs you: the last audit found 1,265 differences');
  expect(verdictOf(health(under('2026-11-22 01:00:01+00'))).word).toBe('Catching up');
  expect(verdictOf(health(under('2026-11-22 00:59:00+00'))).word).toBe('Needs you');
});

describe('refused deliveries', () => {
  const refused = {
    reasons: { 'signature-wrong': 3 },
    since: '2026-11-21 01:00:00+00',
    until: '2026-11-21 01:12:00+00',
    untilSecondsAgo: 30,
    lastedSeconds: 60,
    unread: 773,
  };

  test('keep the verdict from In sync until a complete run has read everything', () => {
    const after = verdictOf(health({ refused: { ...refused, untilSecondsAgo: 3_600 } }));
    expect(headline(after)).toBe('Catching up: 773 deliveries were refused');
    expect(seenIn(health({ refused })).raised).toEqual([]);
    expect(verdictOf(health({ refused: { ...refused, unread: 0 } })).word).toBe('In sync');
    const one = { ...refused, since: '2026-11-23 01:00:00+00', reasons: { 'signature-wrong': 1 }, unread: 1 };
    expect(headline(verdictOf(health({ refused: one })))).toBe('Catching up: 1 delivery was refused');
  });

  test('need a person if they go on for more than ten minutes while others are accepted', () => {
    const word = (more: Partial<typeof refused>) =>
      verdictOf(health({ refused: { ...refused, ...more } })).word;
    expect(word({ lastedSeconds: 601 })).toBe('Needs you');
    expect(word({ lastedSeconds: 600 })).toBe('Catching up');
    expect(word({ lastedSeconds: 601, untilSecondsAgo: 121 })).toBe('Catching up');
  });

  test('are one finding if none is accepted, and stop being Broken ten minutes after the last', () => {
    const all = { ...refused, since: '2026-11-23 01:00:00+00' };
    expect(verdictOf(health({ refused: all })).findings.map(({ alarm }) => alarm)).toEqual([
      'SignaturesRefused',
    ]);
    expect(verdictOf(health({ refused: { ...all, untilSecondsAgo: 601 } })).word).toBe('Catching up');
  });
});

describe('a finding that somebody acknowledged', () => {
  const known = (name: string, counts: Record<string, number>) => ({
    ...warehouse.watch,
    acknowledged: [{ name, key: '', by: 'ada', at: '2026-11-22 01:01:00+00', note: 'a test', counts }],
  });

  test('is left out of the verdict, and says by whom and why', () => {
    const verdict = verdictOf(health({ dead: 2, watch: known('EventsDead', { events: 2 }) }));
    expect(verdict.word).toBe('In sync');
    expect(headline(verdict)).toBe('In sync, 1 acknowledged');
    const [finding] = verdict.findings;
    expect(finding?.acknowledged).toEqual({ by: 'ada', at: '2026-11-22 01:01:00+00', note: 'a test' });
    const more = verdictOf(
      health({ dead: 2, rejectedRecords: 1, watch: known('EventsDead', { events: 2 }) }),
    );
    expect([more.word, headline(more)]).toEqual(['Needs you', 'Needs you: Postgres refuses 1 record']);
  });

  test('counts again once its count rises, and cannot be acknowledged if it stops everything', () => {
    expect(verdictOf(health({ dead: 3, watch: known('EventsDead', { events: 2 }) })).word).toBe('Needs you');
    expect(verdictOf(health({ oldestDueSeconds: 901, watch: known('EventsStalled', {}) })).word).toBe(
      'Broken',
    );
  });
});

test('a finding says since when its alarm is open, and whether anybody was notified', () => {
  const open = [
    { name: 'EventsDead', key: '', openedAt: '2026-11-22 01:01:00+00', notifiedAt: null },
    { name: 'RunUnwell', key: 'kind=reconcile,state=failed', openedAt: '2026-11-22', notifiedAt: null },
  ];
  const [one] = verdictOf(health({ dead: 1, watch: { ...warehouse.watch, open } })).findings;
  expect(one?.open).toEqual({ since: '2026-11-22 01:01:00+00', notifiedAt: null });
});
