import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { makePrivateFolder, writePrivateFile } from '../app/process/private-file.ts';
import { sandboxFile } from '../app/stack.ts';
import { childEnvironment } from '../embedded/environment.ts';
import { readOwnFile } from '../embedded/folder.ts';
import { ask } from '../http/ask.ts';
import { CommandError } from './errors.ts';

/** A sandbox service in a process of its own, which shares only HTTP with the pipeline. */
export interface SandboxProcess {
  readonly url: string;
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly controlToken: string;
  /** Rejects when a sandbox that was started here ends by itself. Otherwise never settles. */
  readonly finished: Promise<void>;
  stop(): Promise<void>;
}

export interface SandboxSize {
  readonly companies: number;
  readonly documents: number;
  readonly intervalDays: number;
}

const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const main = fileURLToPath(new URL(`../sandbox/main${extension}`, import.meta.url));
const quickStart = new URL(`quick-start${extension}`, import.meta.url).href;

/** Starts the sandbox on its database and waits until it answers. Its messages go to `onLine`. */
export async function startSandboxProcess(options: {
  databaseUrl: string;
  dataDir: string;
  size: SandboxSize;
  port?: number;
  more?: Readonly<Record<string, string | number | undefined>>;
  onLine: (line: string) => void;
}): Promise<SandboxProcess> {
  const { size } = options;
  const args = [
    '--port',
    String(options.port ?? 0),
    '--json',
    '--with-parent',
    '--companies',
    String(size.companies),
    '--documents',
    String(size.documents),
    '--interval-days',
    String(size.intervalDays),
    ...Object.entries(options.more ?? {}).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}`, String(value)],
    ),
  ];
  const child = spawn(process.execPath, ['--import', quickStart, main, ...args], {
    stdio: 'pipe',
    // In the environment, because every user of the machine can read arguments.
    env: childEnvironment({ SANDBOX_DATABASE_URL: options.databaseUrl }),
    // In a group of its own: Ctrl-C in the terminal reaches only this process, which stops the sandbox after
    // draining.
    detached: true,
  });
  const lastLines: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    lastLines.push(line);
    if (lastLines.length > 20) lastLines.shift();
    options.onLine(line);
  });
  const ended = new Promise<number | null>((done) => child.once('exit', (code) => done(code)));
  const ready = await new Promise<Omit<SandboxProcess, 'finished' | 'stop'>>((done, failed) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{"url"')) done(JSON.parse(line));
      else options.onLine(line);
    });
    child.once('error', failed);
    ended.then((code) => failed(new Error(`the sandbox ended with status ${code}: ${lastLines.join('\n')}`)));
  });
  makePrivateFolder(options.dataDir);
  writePrivateFile(sandboxFile(options.dataDir), JSON.stringify({ ...ready, pid: child.pid }));
  let stopping = false;
  const finished = ended.then((code) => {
    if (!stopping) throw new CommandError(endedByItself(code, lastLines));
  });
  // Commands that end by themselves do not wait for it.
  finished.catch(() => {});
  return {
    ...ready,
    finished,
    stop: async () => {
      stopping = true;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await ended;
      clearTimeout(timer);
    },
  };
}

const endedByItself = (code: number | null, lastLines: readonly string[]): string => {
  const how = code === null ? 'by a signal' : `with status ${code}: ${lastLines.at(-1)}`;
  return `The sandbox ended by itself, ${how}. Nothing can be read without it: run the same command again.`;
};

const never = new Promise<void>(() => {});

/** Finds the sandbox that another command runs on the same folder, if it answers. */
export async function runningSandbox(dataDir: string): Promise<SandboxProcess | undefined> {
  // A file of another user could name a service of theirs.
  const text = readOwnFile(sandboxFile(dataDir));
  if (text === undefined) return undefined;
  try {
    const sandbox = JSON.parse(text) as SandboxProcess;
    // The sandbox answers this request without Postgres, which may hang.
    const { status } = await ask(`${sandbox.url}/sandbox/organizations`, {
      headers: { authorization: `Bearer ${sandbox.controlToken}` },
      withinMs: 2_000,
    });
    return status === 200 ? { ...sandbox, finished: never, stop: async () => {} } : undefined;
  } catch {
    return undefined;
  }
}
