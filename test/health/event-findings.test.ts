import { expect, test } from 'vitest';
import { failureTypes } from '../../contract/failures.ts';
import type { LateWork, WarehouseHealth } from '../../health/measured.ts';
import { verdictOf } from '../../health/verdict.ts';
import { health, warehouse } from '../support/health-states.ts';

const minutes = 60;
const notShown = { code: 'RECORD_NOT_SHOWN', events: 8_000 } as const;
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
const finding = (seconds: number, late: LateWork | null) =>
  verdictOf(health(due(seconds, late))).findings.find(({ name }) => name === 'events');

test('work that is stuck says what waits, since when nothing was settled, why, and what to do', () => {
  expect(finding(14 * minutes, { settledSecondsAgo: 15 * minutes, reason: notShown })).toMatchObject({
    word: 'Catching up',
    saw:
      'work has been due for 14 min, and no event was settled for 15 min: 2 events of connections and ' +
      '8,166 events of documents wait; the most frequent reason is RECORD_NOT_SHOWN (8,000 events)',
    todo:
      `${failureTypes.RECORD_NOT_SHOWN.operator.replaceAll('`', '')} ` +
      'To see these events: metersync events list --outcome pending --code RECORD_NOT_SHOWN.',
  });
});

test('work that is stuck for 15 minutes is broken, and its alarm says the same', () => {
  expect(finding(16 * minutes, { settledSecondsAgo: null, reason: notShown })).toMatchObject({
    word: 'Broken',
    alarm: 'EventsStalled',
    saw: expect.stringMatching(/^work has been due for 16 min, .* no event was ever settled/),
    todo: expect.stringMatching(/ask the service why.*--code RECORD_NOT_SHOWN\./),
  });
});

test.each([
  [2 * minutes, 'Catching up'],
  [16 * minutes, 'Broken'],
] as const)('work that waits for its first attempt for %s s points to the workers', (seconds, word) => {
  expect(finding(seconds, { settledSecondsAgo: 20 * minutes, reason: null })).toMatchObject({
    word,
    saw: expect.stringMatching(/none of them has been tried yet$/),
    todo: expect.stringMatching(/^See the log of the workers and metersync doctor/),
  });
});

test('work that progresses needs no action', () => {
  expect(finding(14 * minutes, { settledSecondsAgo: 3, reason: notShown })).toMatchObject({
    word: 'Catching up',
    saw: 'work has been due for 14 min; events were last settled 3 s ago',
    todo: 'Nothing, unless the delay grows.',
  });
  expect(finding(30, null)).toBeUndefined();
});
