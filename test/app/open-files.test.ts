import { expect, test } from 'vitest';
import { connectionsMaxFor } from '../../app/process/open-files.ts';

test.each([
  [1_024, 512],
  [4_096, 2_048],
  [16_383, 8_191],
  [16_384, 8_192],
  [Number.POSITIVE_INFINITY, 8_192],
])('with %d open files a receiver accepts %d connections', (filesMax, connectionsMax) => {
  expect(connectionsMaxFor(filesMax)).toBe(connectionsMax);
});
