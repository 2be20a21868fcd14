import { expect, test } from 'vitest';
import { checkLedger, type Effect } from './ledger.ts';
import { blowsFor, partNames } from './plan.ts';

const kept = { acknowledgedWithoutEffect: [], neverSent: [], moreThanOnce: [], deadWithoutReason: [] };
const sent = { sent: new Set(['a', 'b', 'c']), acknowledged: new Set(['a', 'b']), answers: {} };
const effect = (id: string, more: Partial<Effect> = {}): Effect => ({
  id,
  outcome: 'applied',
  error: null,
  rows: 1,
  ...more,
});

test('a ledger in which every promise was kept: what was not acknowledged may have come or not', () => {
  expect(checkLedger(sent, [effect('a'), effect('b')])).toEqual(kept);
  expect(checkLedger(sent, [effect('a'), effect('b', { outcome: 'superseded' }), effect('c')])).toEqual(kept);
  expect(checkLedger(sent, [effect('a'), effect('b', { outcome: 'dead', error: 'why' })])).toEqual(kept);
});

test.each([
  ['an acknowledged event that is nowhere', [effect('a')], { acknowledgedWithoutEffect: ['b'] }],
  [
    'an acknowledged event that still waits',
    [effect('a'), effect('b', { outcome: 'pending' })],
    { acknowledgedWithoutEffect: ['b'] },
  ],
  ['an event that was never sent', [effect('a'), effect('b'), effect('d')], { neverSent: ['d'] }],
  ['an event with two effects', [effect('a'), effect('b', { rows: 2 })], { moreThanOnce: ['b'] }],
  [
    'an event that is dead and does not say why',
    [effect('a'), effect('b', { outcome: 'dead' })],
    { deadWithoutReason: ['b'] },
  ],
])('%s is found', (_what, effects, found) => {
  expect(checkLedger(sent, effects)).toEqual({ ...kept, ...found });
});

test('the same seed and fault plan the same blows, others do not', () => {
  const plan = (seed: number, fault: string) =>
    blowsFor(seed, fault, { times: 5, parts: partNames, afterMs: [0, 1_000], downMs: [0, 1_000] });
  expect(plan(1, 'C5')).toEqual(plan(1, 'C5'));
  expect(plan(1, 'C5')).not.toEqual(plan(2, 'C5'));
  expect(plan(1, 'C5')).not.toEqual(plan(1, 'C4'));
  for (const { at } of plan(1, 'C5'))
    expect(at.map(({ part }) => part).sort()).toEqual([...partNames].sort());
});
