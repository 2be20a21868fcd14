import { expect, test } from 'vitest';
import {
  agreeing,
  counted,
  countedToMax,
  countInWords,
  eventsGivenUp,
  isUntilDecided,
  label,
  nameInWords,
} from '../../contract/words.ts';

test('counts one in the singular, and other numbers in the plural', () => {
  expect([0, 1, 2, 1_234].map((n) => counted(n, 'event'))).toEqual([
    '0 events',
    '1 event',
    '2 events',
    '1,234 events',
  ]);
  expect([1, 2].map((n) => counted(n, 'company', 'companies'))).toEqual(['1 company', '2 companies']);
});

test('the verb agrees with the count', () => {
  expect([0, 1, 2].map((n) => agreeing(n, 'is', 'are'))).toEqual(['are', 'is', 'are']);
});

test('a reason of any version that waits for a decision on deletions is recognised', () => {
  for (const ending of ['deletion is held back', 'deletion is on hold', 'quarantined until somebody decides'])
    expect(isUntilDecided(`2 of 9 rows are missing: ${ending} (metersync deletes list)`), ending).toBe(true);
  expect(isUntilDecided('the total changed between pages')).toBe(false);
});

test('a count that stopped at its limit says that there are more', () => {
  expect([10_000, 10_001].map((n) => countInWords(n))).toEqual(['10,000', '10,000+']);
  expect([1, 1_001].map(eventsGivenUp)).toEqual(['1 event', '1,000+ events']);
  expect([1, 10_001].map((n) => countedToMax(n, 'event'))).toEqual(['1 event', '10,000+ events']);
});

test('a name from code and a name from a table become the same words', () => {
  expect([nameInWords('usageData'), nameInWords('usage_data'), nameInWords('documents')]).toEqual([
    'usage data',
    'usage data',
    'documents',
  ]);
  expect(['recordId', 'workflowRunId', 'receivedAt', 'errorCode', 'id'].map(label)).toEqual([
    'record',
    'workflow run',
    'received',
    'error code',
    'id',
  ]);
});
