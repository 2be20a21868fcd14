import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { makePrivateFolder, writePrivateFile } from '../app/private-file.ts';
import { childEnvironment } from '../embedded/environment.ts';
import { readOwnFile } from '../embedded/ownership.ts';

/** A sandbox service in a process of its own: it shares HTTP with the pipeline and nothing else. */
export interface SandboxProcess {
  readonly url: string;
  readonly apiUrl: string;
  readonly apiKey: string;
  /** What its control routes ask for. */
  readonly controlToken: string;
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
  /** Further options of sandbox/main.ts, by name. */
  more?: Readonly<Record<string, string | number | undefined>>;
  onLine: (line: string) => void;
}): Promise<SandboxProcess> {
  const { size } = options;
  const args = [
    ...['--port', String(options.port ?? 0), '--json', '--with-parent'],
    ...['--companies', String(size.companies), '--documents', String(size.documents)],
    ...['--interval-days', String(size.intervalDays)],
    ...Object.entries(options.more ?? {}).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}`, String(value)],
    ),
  ];
  const child = spawn(process.execPath, ['--import', quickStart, main, ...args], {
    stdio: 'pipe',
    // Every user of the machine can read arguments, and only its own user the environment.
    env: childEnvironment({ SANDBOX_DATABASE_URL: options.databaseUrl }),
    // A group of its own: Ctrl-C in the terminal is for us, we stop it when we have drained.
    detached: true,
  });
  const said: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line);
    if (said.length > 20) said.shift();
    options.onLine(line);
  });
  const ended = new Promise<number | null>((done) => child.once('exit', (code) => done(code)));
  const ready = await new Promise<Omit<SandboxProcess, 'stop'>>((done, failed) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{"url"')) done(JSON.parse(line));
      else options.onLine(line);
    });
    child.once('error', failed);
    ended.then((code) => failed(new Error(`the sandbox ended with status ${code}: ${said.join('\n')}`)));
  });
  makePrivateFolder(options.dataDir);
  writePrivateFile(sandboxFile(options.dataDir), JSON.stringify({ ...ready, pid: child.pid }));
  return {
    ...ready,
    stop: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** The sandbox that another command on the same folder runs, if it answers. */
export async function runningSandbox(dataDir: string): Promise<SandboxProcess | undefined> {
  // One that another user put there would name a service of theirs.
  const text = readOwnFile(sandboxFile(dataDir));
  if (text === undefined) return undefined;
  try {
    const known = JSON.parse(text) as SandboxProcess;
    const answer = await fetch(`${known.url}/sandbox/status`, {
      headers: { authorization: `Bearer ${known.controlToken}` },
      signal: AbortSignal.timeout(2_000),
    });
    return answer.ok ? { ...known, stop: async () => {} } : undefined;
  } catch {
    return undefined;
  }
}

const sandboxFile = (dataDir: string): string => join(dataDir, 'sandbox.json');
