import { expect, test } from 'vitest';
import { describeTaken } from '../../app/process/events-log.ts';

test.each([
  [{ fresh: 12, dead: 0 }, 0, '12 events recorded, all settled'],
  [{ fresh: 1, dead: 0 }, 1, '1 event recorded, 1 record to be read again'],
  [{ fresh: 3, dead: 2 }, 0, '3 events recorded, 2 of them dead, all settled'],
  [{ fresh: 5_000, dead: 0 }, 1_001, '5,000 events recorded, more than 1,000 records to be read again'],
])('logs %j recorded while %i records wait as: %s', (taken, waiting, line) => {
  expect(describeTaken(taken, waiting)).toBe(line);
});
