import { expect, test } from 'vitest';
import { startPolicy } from '../../contract/retry-policy.ts';
import { watchStarts } from '../../receiver/starts.ts';

const request = { workflowId: 'event/msg_1/1', group: { events: [] }, withinMs: 1_000 };

function watched() {
  let now = 0;
  let succeeds = false;
  const starts = watchStarts(
    () => (succeeds ? Promise.resolve() : Promise.reject(new Error('8 RESOURCE_EXHAUSTED'))),
    () => now,
  );
  const startOnce = async (how: 'succeeds' | 'fails') => {
    succeeds = how === 'succeeds';
    await starts.start(request).catch(() => {});
    return starts.fail();
  };
  return {
    startOnce,
    fail: starts.fail,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

test('starts count as failing after several failures in a row, until one succeeds', async () => {
  const { startOnce } = watched();
  const answers: boolean[] = [];
  for (const how of ['fails', 'fails', 'succeeds', 'fails', 'fails', 'fails', 'fails', 'succeeds'] as const)
    answers.push(await startOnce(how));
  expect(answers).toEqual([false, false, false, false, false, true, true, false]);
});

test('without further starts they count as failing only for a while, and then one more failure is enough', async () => {
  const { startOnce, fail, pass } = watched();
  for (let n = 0; n < startPolicy.failedInARow; n += 1) await startOnce('fails');
  pass(startPolicy.failForMs - 1);
  expect(fail()).toBe(true);
  pass(1);
  expect(fail()).toBe(false);
  expect(await startOnce('fails')).toBe(true);
});
