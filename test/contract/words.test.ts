import { expect, test } from 'vitest';
import { counted, countedToMax, eventsGivenUp, isUntilDecided, label } from '../../contract/words.ts';

test('a reason of any version that waits for a decision on deletions is recognised', () => {
  for (const ending of ['deletion is held back', 'deletion is on hold', 'quarantined until somebody decides'])
    expect(isUntilDecided(`2 of 9 rows are missing: ${ending} (metersync deletes list)`), ending).toBe(true);
  expect(isUntilDecided('the total changed between pages')).toBe(false);
});

test('counts and names become words', () => {
  expect([1, 1_234].map((n) => counted(n, 'event'))).toEqual(['1 event', '1,234 events']);
  expect([1, 1_001].map(eventsGivenUp)).toEqual(['1 event', '1,000+ events']);
  expect([10_000, 10_001].map((n) => countedToMax(n, 'event'))).toEqual(['10,000 events', '10,000+ events']);
  expect(['workflowRunId', 'receivedAt', 'usage_data'].map(label)).toEqual([
    'workflow run',
    'received',
    'usage data',
  ]);
});
