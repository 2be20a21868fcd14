import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folder.ts';
import { isNewEnough } from './engine.ts';

test('without an engine, the test of the compose file is skipped with a sentence and status 0', async () => {
  const empty = await temporaryFolder();
  try {
    const run = spawnSync(process.execPath, [resolve(import.meta.dirname, 'main.ts')], {
      env: { PATH: empty.path },
      encoding: 'utf8',
    });
    expect(run).toMatchObject({
      status: 0,
      stdout: 'Skipped: docker-compose.yml was not tried, because there is no command docker.\n',
      stderr: '',
    });
  } finally {
    await empty.remove();
  }
});

test.each([
  ['2.39.4', true],
  ['v2.24.0', true],
  ['3.0.1', true],
  ['2.23.3', false],
  ['1.29.2', false],
])('Compose %s can read the file: %s', (version, expected) => {
  expect(isNewEnough(version)).toBe(expected);
});
