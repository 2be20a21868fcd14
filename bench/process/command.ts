import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Bench } from '../measure.ts';

const sampleEveryMs = 250;

export interface CommandRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly seconds: number;
  /** Samples of its resident memory in bytes, at even intervals. */
  readonly resident: readonly number[];
}

/** Runs `metersync ARGS` to its end, as a user does, and samples its memory. Its stderr goes to the log. */
export async function runCommand(
  bench: Bench,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<CommandRun> {
  const { PATH = '', HOME = '' } = process.env;
  const profile = bench.profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${bench.profileDir}`];
  const log = openSync(join(bench.stack.dir, 'logs', 'bench.log'), 'a');
  const began = performance.now();
  const child = spawn(
    process.execPath,
    [...profile, resolve(import.meta.dirname, '../../cli/main.ts'), ...args],
    { env: { PATH, HOME, ...env }, stdio: ['ignore', 'pipe', log] },
  );
  closeSync(log);
  const ended = once(child, 'close');
  bench.atEnd(async () => {
    if (child.kill('SIGKILL')) await ended;
  });
  const stdout = text(child.stdout as NonNullable<typeof child.stdout>);
  const resident: number[] = [];
  const sampling = setInterval(() => {
    residentBytes(child.pid ?? 0).then(
      (bytes) => resident.push(bytes),
      () => {},
    );
  }, sampleEveryMs);
  try {
    const [status] = (await ended) as [number | null];
    return { status, stdout: await stdout, seconds: (performance.now() - began) / 1000, resident };
  } finally {
    clearInterval(sampling);
  }
}

/** Returns the resident memory of a process. Rejects if there is no such process. */
async function residentBytes(pid: number): Promise<number> {
  const kilobytes =
    process.platform === 'linux'
      ? /^VmRSS:\s*(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]
      : (await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)])).stdout.trim();
  if (!kilobytes) throw new Error(`process ${pid} is gone`);
  return Number(kilobytes) * 1024;
}
