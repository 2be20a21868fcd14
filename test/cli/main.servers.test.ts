import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { runProcess } from '../support/command-process.ts';

const checkout = resolve(import.meta.dirname, '../..');

test('the process ends with the status of the command, and prints errors to standard error', async () => {
  expect(await runProcess(['status', '--fast'])).toEqual({
    ...{ status: 2, signal: null, stdout: '' },
    stderr: expect.stringContaining("unknown option '--fast'"),
  });
});

test('a standard error that cannot be written does not change the status', async () => {
  const main = resolve(checkout, 'cli/main.ts');
  const sent = promisify(execFile)('sh', [
    '-c',
    '"$0" "$1" status --fast 2> /dev/full',
    process.execPath,
    main,
  ]);
  await expect(sent).rejects.toMatchObject({ code: 2 });
});

test('reports that a full disk did not take its output', async () => {
  const main = resolve(checkout, 'cli/main.ts');
  const sent = promisify(execFile)('sh', ['-c', '"$0" "$1" --help > /dev/full', process.execPath, main]);
  await expect(sent).rejects.toMatchObject({
    code: 1,
    stderr: 'metersync: standard output: ENOSPC: no space left on device, write\n',
  });
});
