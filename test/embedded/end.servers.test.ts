import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { readRunning, runningFile, writeRunning } from '../../embedded/folder.ts';
import { isRunning } from '../../embedded/process.ts';
import { eraseFolder, startEmbedded } from '../../embedded/start.ts';
import { until } from '../support/poll.ts';
import { folderWithData, startOwner } from './owner-process.ts';

test('Ctrl-C reaches only the program, and the servers answer until it has drained', async () => {
  const owner = await startOwner(folderWithData());
  process.kill(-(owner.child.pid ?? 0), 'SIGINT');
  await owner.printed('drained');
  await once(owner.child, 'exit');
  expect(owner.child.exitCode).toBe(0);
  expect([owner.postgres, owner.temporal].filter(isRunning)).toEqual([]);
  expect(existsSync(runningFile(owner.dir))).toBe(false);
});

test('the next start stops servers that outlived their program', async () => {
  const dir = folderWithData();
  const left = await startEmbedded({ dir, postgres: true, temporal: true });
  onTestFinished(left.stop);
  const { servers = {} } = readRunning(dir) ?? {};
  disown(dir);
  const stack = await startEmbedded({ dir, postgres: true, temporal: true });
  onTestFinished(stack.stop);
  expect(stack.owned).toBe(true);
  expect(Object.values(servers).map(isRunning)).toEqual([false, false]);
  await left.stop();
});

test('erasing a data folder ends the servers that outlived their program', async () => {
  const dir = folderWithData();
  const left = await startEmbedded({ dir, postgres: true, temporal: false });
  onTestFinished(left.stop);
  const { servers = {} } = readRunning(dir) ?? {};
  disown(dir);
  await eraseFolder(dir);
  expect(Object.values(servers).map(isRunning)).toEqual([false]);
  expect(existsSync(dir)).toBe(false);
});

test('a Temporal that ends by itself ends the stack with a sentence that says what to do', async () => {
  const dir = folderWithData();
  const stack = await startEmbedded({ dir, postgres: false, temporal: true });
  onTestFinished(stack.stop);
  process.kill(readRunning(dir)?.servers.temporal?.pid ?? 0, 'SIGKILL');
  await expect(stack.finished).rejects.toThrow(
    /^The embedded Temporal ended by itself \(SIGKILL\).* Run the same command again\.\n.*temporal\.log/,
  );
});

test('no server is left when its program is killed, even if the data folder was deleted', async () => {
  const owner = await startOwner(folderWithData());
  rmSync(owner.dir, { recursive: true, force: true });
  owner.child.kill('SIGKILL');
  await until('Postgres and Temporal are gone', () => ![owner.postgres, owner.temporal].some(isRunning));
});

/** Makes the file look as if the program that started the servers had ended while they keep running. */
function disown(dir: string): void {
  const running = readRunning(dir);
  if (running === undefined) throw new Error('nothing runs there');
  writeRunning(dir, { ...running, owner: { pid: process.pid, started: 'in another life' } });
}
