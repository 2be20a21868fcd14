import { expect, test } from 'vitest';
import {
  counted,
  countedToMax,
  countInWords,
  eventsGivenUp,
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
