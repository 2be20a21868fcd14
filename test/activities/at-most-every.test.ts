import { expect, test } from 'vitest';
import { atMostEvery } from '../../activities/at-most-every.ts';

test('atMostEvery passes on the first value, and then the first value of each later second', async () => {
  let now = 0;
  const passed: number[] = [];
  const pass = atMostEvery(
    1_000,
    () => now,
    async (value: number) => void passed.push(value),
  );
  for (now = 0; now <= 3_500; now += 400) await pass(now);
  expect(passed).toEqual([0, 1_200, 2_400]);
});
