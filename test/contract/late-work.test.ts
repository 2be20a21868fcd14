import { expect, test } from 'vitest';
import { alertTypes } from '../../contract/alerts.ts';
import { failureTypes } from '../../contract/failures.ts';
import type { LateWork } from '../../contract/late-work.ts';
import { verdictOf, type WarehouseHealth } from '../../contract/verdict.ts';
import { health, warehouse } from '../support/health-states.ts';

const minutes = 60;
const notShown = {
  code: 'RECORD_NOT_SHOWN',
  message: 'the service answers 404 for the record',
  events: 8_000,
} as const;
const { document } = warehouse.pending;

/** A deployment with 8,166 pending events of documents and 2 of connections, due for some time. */
function due(oldestDueSeconds: number, late: LateWork | null): Partial<WarehouseHealth> {
  const pending = {
    ...warehouse.pending,
    connection: { ...document, parked: 2 },
    document: { ...document, due: 8_000, waiting: 166 },
  };
  return { pending, oldestDueSeconds, late };
}
const eventsFinding = (state: Partial<WarehouseHealth>) =>
  verdictOf(health(state)).findings.find(({ name }) => name === 'events');

test('work on which nothing moves says what waits, since when nothing was settled, why, and what to do', () => {
  const state = due(14 * minutes, { settledSecondsAgo: 15 * minutes, reason: notShown });
  expect(eventsFinding(state)).toEqual({
    name: 'events',
    word: 'Catching up',
    saw:
      'work has been due for 14 min, and no event was settled for 15 min: 2 events of connections and ' +
      '8,166 events of documents wait; the most frequent reason is RECORD_NOT_SHOWN (8,000 events): ' +
      'the service answers 404 for the record',
    todo:
      `${failureTypes.RECORD_NOT_SHOWN.operator} ` +
      'To see these events: metersync events list --outcome pending --code RECORD_NOT_SHOWN.',
  });
});

test('after 15 minutes it is broken, and its alarm says why, without words of the service', () => {
  const state = due(16 * minutes, { settledSecondsAgo: null, reason: notShown });
  expect(eventsFinding(state)).toMatchObject({
    word: 'Broken',
    saw: expect.stringContaining('no event was ever settled'),
    todo: expect.stringMatching(/ask the service why.*--code RECORD_NOT_SHOWN\. See the log of the workers/),
  });
  const [raised] = alertTypes.EventsStalled.judge?.(health(state)) ?? [];
  expect(raised?.detail).toMatch(
    /^work has been due for 16 min, .* reason is RECORD_NOT_SHOWN \(8,000 events\)$/,
  );
});

test('work that waits for its first try points to the workers', () => {
  const state = due(2 * minutes, { settledSecondsAgo: 3 * minutes, reason: null });
  expect(eventsFinding(state)).toMatchObject({
    word: 'Catching up',
    saw: expect.stringMatching(/none of them was tried yet$/),
    todo: expect.stringMatching(/^See the log of the workers/),
  });
});

test('work that nobody has tried for 15 minutes is broken', () => {
  const state = due(16 * minutes, { settledSecondsAgo: 20 * minutes, reason: null });
  expect(eventsFinding(state)).toMatchObject({
    word: 'Broken',
    todo: expect.stringMatching(/^See the log of the workers and metersync doctor/),
  });
});

test('work that moves needs nothing', () => {
  const state = due(14 * minutes, { settledSecondsAgo: 3, reason: notShown });
  expect(eventsFinding(state)).toMatchObject({
    word: 'Catching up',
    saw: 'work has been due for 14 min; events were last settled 3 s ago',
    todo: 'Nothing, unless it grows.',
  });
  expect(eventsFinding(due(30, null))).toMatchObject({ word: 'In sync', todo: null });
});
