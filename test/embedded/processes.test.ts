import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { commandLine, endProcess, identify, isRunning } from '../../embedded/processes.ts';

/** Starts a process that prints once it is ready for signals. */
async function startProcess(code: string): Promise<ChildProcess & { pid: number }> {
  const child = spawn(
    process.execPath,
    ['-e', `${code}; setInterval(() => {}, 1000); console.log('ready')`],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  if (child.stdout !== null) await once(child.stdout, 'data');
  return Object.assign(child, { pid: child.pid ?? 0 });
}

test('a later process with the same pid is not taken for the first', async () => {
  const self = identify(process.pid);
  expect(self).toMatchObject({ pid: process.pid, started: expect.stringMatching(/./) });
  expect(self && isRunning(self)).toBe(true);
  expect(isRunning({ pid: process.pid, started: 'before' })).toBe(false);
  expect(commandLine(process.pid)).toContain('node');
});

test('a process is the same for a command in another time zone, also where ps says when it started', () => {
  const { platform } = process;
  onTestFinished(() => {
    Object.defineProperty(process, 'platform', { value: platform });
    vi.unstubAllEnvs();
  });
  Object.defineProperty(process, 'platform', { value: 'darwin' });
  const self = identify(process.pid);
  vi.stubEnv('TZ', 'Asia/Tokyo');
  expect(identify(process.pid)).toEqual(self);
});

test('a process that has ended does not run', async () => {
  const child = await startProcess('');
  const identity = identify(child.pid);
  child.kill();
  await once(child, 'exit');
  expect(identify(child.pid)).toBeUndefined();
  expect(identity && isRunning(identity)).toBe(false);
});

test('a process that ignores every signal is killed in the end', async () => {
  const child = await startProcess("for (const s of ['SIGINT', 'SIGTERM']) process.on(s, () => {})");
  const exit = once(child, 'exit');
  const identity = identify(child.pid) ?? { pid: 0, started: '' };
  await endProcess(identity, [
    { signal: 'SIGINT', waitMs: 50 },
    { signal: 'SIGTERM', waitMs: 50 },
  ]);
  expect(isRunning(identity)).toBe(false);
  expect(await exit).toEqual([null, 'SIGKILL']);
});

test('a process that ends at the first signal gets no other', async () => {
  const child = await startProcess("process.on('SIGINT', () => process.exit(7))");
  const exit = once(child, 'exit');
  await endProcess(identify(child.pid) ?? { pid: 0, started: '' }, [{ signal: 'SIGINT', waitMs: 10_000 }]);
  expect(await exit).toEqual([7, null]);
});
