import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Health,
  headline,
  type LastRun,
  type TemporalHealth,
  verdictOf,
  verdictStatus,
  verdictWords,
  type WarehouseHealth,
} from '../../contract/verdict.ts';

const complete: LastRun = { runId: 'r', state: 'complete', finishedAt: '2026-11-22', error: null };
const warehouse: WarehouseHealth = {
  oldestDueSeconds: null,
  dead: 0,
  missingLately: 0,
  parked: [],
  loaded: true,
  runs: { full: { running: 0, last: complete }, reconcile: { running: 0, last: complete } },
  undecidedDeletes: 0,
  rejectedRecords: 0,
  blockedViews: 0,
  silenceHours: 72,
  silence: { lastEventAt: '2026-11-22', quietSeconds: 60, signs: [] },
};
const temporal: TemporalHealth = {
  idle: [],
  schedules: [
    { name: 'full', state: 'active', reason: null, next: '2026-11-23T03:00:00Z' },
    { name: 'reconcile', state: 'active', reason: null, next: null },
  ],
};
const away = { away: 'it does not answer', todo: 'Bring it up.' };
const lastFull = (last: Partial<LastRun> | null, running = 0): Partial<WarehouseHealth> => ({
  runs: { ...warehouse.runs, full: { running, last: last === null ? null : { ...complete, ...last } } },
});
const paused = { name: 'full', state: 'paused', reason: 'a move', next: null } as const;
const quiet = { lastEventAt: '2026-11-01', quietSeconds: 80 * 3_600, signs: ['no event came for 80 hours'] };
const missed = { ...quiet, quietSeconds: 60, signs: ['5 changes were told by no event'] };

/** A fault, its word, and the text for the operator. */
const ills: readonly [string, Partial<WarehouseHealth>, Partial<TemporalHealth>, string, RegExp][] = [
  ['no worker', {}, { idle: ['events', 'backfill', 'checks'] }, 'Broken', /metersync worker/],
  ['none for checks', {}, { idle: ['checks'] }, 'Needs you', /metersync worker/],
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
    { parked: [{ code: 'SERVICE_ACCESS_DENIED', events: 1, parts: 2 }] },
    ...([{}, 'Needs you', /metersync resume/] as const),
  ],
  [
    'a refused key',
    { parked: [{ code: 'SERVICE_KEY_REFUSED', events: 0, parts: 0 }] },
    ...([{}, 'Broken', /SERVICE_API_KEY/] as const),
  ],
  [
    'an outage of the service',
    { parked: [{ code: 'SERVICE_OUTAGE', events: 0, parts: 0 }] },
    ...([{}, 'Broken', /ask the service/] as const),
  ],
  ['nothing ever loaded', { loaded: false, ...lastFull(null) }, {}, 'Needs you', /backfill all/],
  ['a first backfill', { loaded: false, ...lastFull(null, 1) }, {}, 'Catching up', /Nothing/],
  ['work that is due for long', { oldestDueSeconds: 61 }, {}, 'Catching up', /Nothing/],
  ['work that nobody does', { oldestDueSeconds: 901 }, {}, 'Broken', /log of the workers/],
  ['deletions to decide', { undecidedDeletes: 2 }, {}, 'Needs you', /deletes approve/],
  ['records that Postgres refuses', { rejectedRecords: 2 }, {}, 'Needs you', /rejected_records/],
  ['views that are blocked', { blockedViews: 1 }, {}, 'Needs you', /views refresh/],
  ['silence', { silence: quiet }, {}, 'Broken', /endpoint may be disabled/],
  ['changes without an event', { silence: missed }, {}, 'Needs you', /endpoint may be disabled/],
];

const health = (a: Partial<WarehouseHealth> = {}, b: Partial<TemporalHealth> = {}): Health => ({
  warehouse: { ...warehouse, ...a },
  temporal: { ...temporal, ...b },
});

test('a deployment without a fault is in sync', () => {
  expect(headline(verdictOf(health()))).toBe('In sync');
  expect(verdictOf(health()).findings.every(({ todo }) => todo === null)).toBe(true);
});

test('a schedule that is removed or absent is no fault', () => {
  for (const state of ['removed', 'absent'] as const)
    expect(verdictOf(health({}, { schedules: [{ ...paused, state }] })).word).toBe('In sync');
});

describe.each(ills)('%s', (_, a, b, word, todo) => {
  test(`makes it ${word}, and says what to do`, () => {
    const verdict = verdictOf(health(a, b));
    const [first] = verdict.findings;
    expect(verdict.word).toBe(word);
    expect(first).toMatchObject({ word, todo: expect.stringMatching(todo) });
    expect(headline(verdict)).toContain(`${word}: ${first?.name}: ${first?.saw}`);
  });

  test('is reported even if the other side cannot be reached', () => {
    const ofWarehouse = Object.keys(b).length === 0;
    const { word: heard } = verdictOf(
      ofWarehouse
        ? { warehouse: { ...warehouse, ...a }, temporal: away }
        : { warehouse: away, temporal: { ...temporal, ...b } },
    );
    expect(heard).toBe(word === 'Catching up' ? 'Unknown' : word);
  });
});

test('a side that cannot be reached is never well, and several faults are as bad as the worst', () => {
  for (const one of [
    { warehouse: away, temporal },
    { warehouse, temporal: away },
    { warehouse: away, temporal: away },
  ]) {
    expect(verdictOf(one).word).toBe('Unknown');
    expect(verdictOf(one).findings[0]).toMatchObject({ word: 'Unknown', todo: 'Bring it up.' });
    expect(verdictStatus[verdictOf(one).word]).toBe(5);
  }
  fc.assert(
    fc.property(fc.subarray([...ills], { minLength: 1 }), (some) => {
      const parts = some.map(([, a]) => a).filter((a) => Object.keys(a).length > 0);
      const words = some.filter(([, a]) => Object.keys(a).length > 0).map(([, , , word]) => word);
      fc.pre(new Set(parts.flatMap(Object.keys)).size === parts.flatMap(Object.keys).length);
      const { word, findings } = verdictOf(health(Object.assign({}, ...parts)));
      const ranks = [...words, 'In sync'].map((one) => verdictWords.indexOf(one as 'Broken'));
      expect(verdictWords.indexOf(word)).toBe(Math.max(...ranks));
      for (const finding of findings) expect(finding.todo === null).toBe(finding.word === 'In sync');
    }),
  );
});
