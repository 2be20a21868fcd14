import { expect, test } from 'vitest';
import { judgeOpenFiles, openFilesMax } from '../../app/process/open-files.ts';

test.each([
  [255, 0, 'refused'],
  [256, 64, 'warned'],
  [1_024, 768, 'warned'],
  [4_096, 3_840, 'warned'],
  [8_447, 8_191, 'warned'],
  [8_448, 8_192, 'taken'],
  [Number.POSITIVE_INFINITY, 8_192, 'taken'],
])('with %d open files a receiver accepts %d connections, and is %s', (max, connectionsMax, how) => {
  const judged = judgeOpenFiles(max);
  expect(judged.connectionsMax).toBe(connectionsMax);
  expect([judged.refusal, judged.warning].map((words) => words !== undefined)).toEqual([
    how === 'refused',
    how === 'warned',
  ]);
});

test('reads the limit of this process', () => {
  expect(openFilesMax()).toBeGreaterThan(256);
});
