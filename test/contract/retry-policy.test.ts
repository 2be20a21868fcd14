import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { activityPolicy, attemptPolicy, recordPolicy, triedFor } from '../../contract/retry-policy.ts';

const rooms = ['receiver', 'workflows', 'service', 'db', 'activities', 'app', 'operations'];

/** Matches a constant whose name says that it is a time or a number of tries, and whose value is a number. */
const ownWait = /^(?:export )?const \w*(?:Ms|Seconds|Minutes|[aA]ttempts(?:Max)?|[tT]ries) = [\d_]+;$/gm;

/** Lengths of readings, which are not waits. */
const lengths = ['const usualSeconds = 900;', 'export const daySeconds = 86_400;'];

test('every wait and number of tries is in the policy', () => {
  const found = rooms.flatMap((room) =>
    globSync(`${room}/**/*.ts`).flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(ownWait)].map(String),
    ),
  );
  expect(found.sort()).toEqual(lengths.toSorted());
});

test('waits fit into the waits around them', () => {
  expect(3 * attemptPolicy.heartbeatEveryMs).toBeLessThan(activityPolicy.reading.heartbeatTimeout);
  expect(recordPolicy.notFoundAttemptsMax).toBeLessThan(recordPolicy.olderStateAttemptsMax);
});

test('the time for which work is tried follows from its waits', () => {
  // 1 + 2 + … + 128 s; 1 + 2 + … + 512 s and five times 900 s; 2 + 4 + … + 64 s and 29 times 120 s.
  expect(triedFor).toEqual({
    notFound: '4 min',
    olderState: '92 min',
    parked: '10 s to 15 min',
    backfill: '60 min',
  });
});
