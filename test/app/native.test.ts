import { ApplicationFailure } from '@temporalio/common';
import { expect, test } from 'vitest';
import { repeatedFailures } from '../../app/temporal/native.ts';
import { limits } from '../../contract/limits.ts';

const failed = (activityType: string, type?: string) => ({
  activityType,
  error: type === undefined ? new Error('a defect') : ApplicationFailure.create({ type, message: 'no' }),
});

test('logs a failure that is retried once a minute for each activity and cause', () => {
  const clock = { ms: 0 };
  const repeats = repeatedFailures(() => clock.ms);
  const outage = failed('recordGroup', 'WAREHOUSE_UNAVAILABLE');
  expect([1, 2, 3].map(() => repeats('Activity failed', outage))).toEqual([false, true, true]);
  expect(repeats('Activity failed', failed('keepMonths', 'WAREHOUSE_UNAVAILABLE'))).toBe(false);
  expect(repeats('Activity failed', failed('recordGroup', 'SERVICE_UNREACHABLE'))).toBe(false);
  clock.ms = limits.failureLogMs - 1;
  expect(repeats('Activity failed', outage)).toBe(true);
  clock.ms = limits.failureLogMs;
  expect(repeats('Activity failed', outage)).toBe(false);
});

test('logs one attempt per minute of a call that is retried', () => {
  const repeats = repeatedFailures(() => 0);
  expect(repeats('gRPC call poll_activity_task_queue retried 6 times')).toBe(false);
  expect(repeats('gRPC call poll_activity_task_queue retried 7 times')).toBe(true);
  expect(repeats('gRPC call poll_workflow_task_queue retried 7 times')).toBe(false);
});

test('logs defects, failures that park work, and other lines each time', () => {
  const repeats = repeatedFailures(() => 0);
  const lines: [string, object?][] = [
    ['Activity failed', failed('recordGroup')],
    ['Activity failed', failed('readCompany', 'SERVICE_KEY_REFUSED')],
    ['Activity failed', failed('readCompany', 'of another library')],
    ['Workflow failed'],
  ];
  for (const line of [...lines, ...lines]) expect(repeats(...line)).toBe(false);
});
