import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { CommandOptions } from './command.ts';
import { until } from './poll.ts';

const checkout = resolve(import.meta.dirname, '../..');

export interface ProcessOptions extends CommandOptions {
  /** The checkout whose code runs; this checkout when absent. */
  readonly checkout?: string;
  /** How many files and sockets it may have open. */
  readonly openFilesMax?: number;
  /** The program, as a path in the checkout; `cli/main.ts` when absent. */
  readonly program?: string;
}

/** `metersync` as a user runs it, in its own process. */
export interface RunningCommand {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Returns its output so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Waits for a matching line on standard output or error; throws if the process ends first. */
  printed(pattern: RegExp, timeoutMs?: number): Promise<string>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<Ended>;
  /** Signals it and waits until it has ended. */
  end(signal: NodeJS.Signals): Promise<Ended>;
}

export interface Ended {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Variables with which a worker runs workflows in its main thread: a user's two threads take 0.6 s of
 * processor time. Tests of draining, of the demo and of a start from nothing keep them.
 */
export const withoutThreads = {
  TEMPORAL_DEBUG: '1',
  NODE_OPTIONS: `--import=${import.meta.resolve('./without-promise-hooks.ts')}`,
} as const;

/** Starts `node PROGRAM ARGS`. The caller ends the process. It also ends when the test process ends. */
export function startCommand(args: readonly string[], options: ProcessOptions = {}): RunningCommand {
  const { PATH = '', HOME = '' } = process.env;
  const code = options.checkout ?? checkout;
  const line = [process.execPath, resolve(code, options.program ?? 'cli/main.ts'), ...args];
  const limited = ['/bin/sh', '-c', 'ulimit -n "$0" && exec "$@"', String(options.openFilesMax)];
  const [program, ...given] = options.openFilesMax === undefined ? line : [...limited, ...line];
  const child = spawn(program as string, given, {
    cwd: options.cwd ?? code,
    // This keeps the compiled code of the first two files, which run before the program enables that.
    env: { PATH, HOME, NODE_COMPILE_CACHE: resolve(code, '.metersync/compiled'), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // A command that does not read its input may end before all of the input is written.
  child.stdin.on('error', () => {}).end(options.input);
  const killWithUs = () => child.kill('SIGKILL');
  process.once('exit', killWithUs);
  const said = { stdout: [] as string[], stderr: [] as string[] };
  for (const name of ['stdout', 'stderr'] as const) {
    createInterface({ input: child[name] }).on('line', (line) => said[name].push(line));
  }
  // `close` rather than `exit`: by then everything that it printed has been read.
  const ended = once(child, 'close').then(([status, signal]): Ended => {
    process.off('exit', killWithUs);
    return { status, signal };
  });
  const text = (name: 'stdout' | 'stderr') => said[name].join('\n');
  return {
    pid: child.pid ?? 0,
    child,
    stdout: () => text('stdout'),
    stderr: () => text('stderr'),
    ended,
    printed: async (pattern, timeoutMs = 60_000) => {
      const find = () => [...said.stdout, ...said.stderr].find((line) => pattern.test(line));
      const over = () => child.exitCode !== null || child.signalCode !== null;
      const what = `metersync ${args.join(' ')} prints ${pattern}`;
      await until(what, () => find() !== undefined || over(), { timeoutMs });
      const line = find();
      if (line !== undefined) return line;
      throw new Error(`It ended before: ${what}\n${text('stdout')}\n${text('stderr')}`);
    },
    end: async (signal) => {
      child.kill(signal);
      return await ended;
    },
  };
}

/** Runs a command to its end. A test that does not depend on the process uses `runCommand` of command.ts. */
export async function runProcess(
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<Ended & { stdout: string; stderr: string }> {
  const command = startCommand(args, options);
  const ended = await command.ended;
  return { ...ended, stdout: command.stdout(), stderr: command.stderr() };
}
