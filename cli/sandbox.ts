import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { makePrivateFolder, writePrivateFile } from '../app/process/private-file.ts';
import type { Running } from '../app/process/running.ts';
import { readSettings } from '../app/settings/settings.ts';
import { openStack, sandboxFile } from '../app/stack.ts';
import { readOwnFile } from '../embedded/folder.ts';
import { childEnvironment } from '../embedded/process.ts';
import { ask } from '../http/ask.ts';
import { CommandError, print, say } from './output.ts';
import { untilAsked } from './signals.ts';

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
  const { databaseUrl, dataDir, size, port = 0, more = {}, onLine } = options;
  const { companies, documents, intervalDays } = size;
  const given = { port, companies, documents, 'interval-days': intervalDays, ...more };
  const args = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );
  const child = spawn(process.execPath, ['--import', quickStart, main, '--json', '--with-parent', ...args], {
    stdio: 'pipe',
    // In the environment, because every user of the machine can read arguments.
    env: childEnvironment({ SANDBOX_DATABASE_URL: databaseUrl }),
    // In a group of its own: Ctrl-C in the terminal reaches only this process, which stops the sandbox after
    // draining.
    detached: true,
  });
  const lastLines: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    lastLines.push(line);
    if (lastLines.length > 20) lastLines.shift();
    onLine(line);
  });
  const ended = new Promise<number | null>((done) => child.once('exit', (code) => done(code)));
  const ready = await new Promise<Omit<SandboxProcess, 'finished' | 'stop'>>((done, failed) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{"url"')) done(JSON.parse(line));
      else onLine(line);
    });
    child.once('error', failed);
    ended.then((code) => failed(new Error(`the sandbox ended with status ${code}: ${lastLines.join('\n')}`)));
  });
  makePrivateFolder(dataDir);
  writePrivateFile(sandboxFile(dataDir), JSON.stringify({ ...ready, pid: child.pid }));
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

interface SandboxOptions extends SandboxSize {
  readonly seed?: number;
  readonly until: string;
  readonly live?: number;
  readonly irregular?: number;
  readonly host?: string;
  readonly port?: number;
  readonly deliverTo?: string;
}

/** `metersync sandbox`: runs a sandbox of the service, to integrate with, on a database of its own. */
export async function sandboxCommand({
  seed,
  until,
  live,
  irregular,
  host,
  port = 0,
  deliverTo,
  ...size
}: SandboxOptions): Promise<void> {
  const settings = readSettings({ METERSYNC_DIR: process.env.METERSYNC_DIR });
  // A sandbox that is stopped while it starts reports an error, which helps nobody.
  let stopping = false;
  const onLine = (line: string) => {
    if (!stopping) say(line);
  };
  const opened: Running[] = [];
  await untilAsked(process, {
    begin: async () => {
      const databaseUrl = process.env.SANDBOX_DATABASE_URL || (await ownDatabase());
      const sandbox = await startSandboxProcess({
        databaseUrl,
        dataDir: resolve(settings.dataDir),
        size,
        more: { port, seed, until, live, irregular, host, 'deliver-to': deliverTo },
        onLine,
      });
      opened.unshift(sandbox);
      print(...describe(sandbox, await openPortal(sandbox)));
      return opened.map(({ finished }) => finished);
    },
    onAsked: () => {
      stopping = true;
    },
    drain: async () => {
      for (const part of opened) await part.stop();
    },
  });

  async function ownDatabase(): Promise<string> {
    const stack = await openStack(settings, { postgres: false, temporal: false, sandbox: true, log: onLine });
    opened.push(stack);
    return await stack.databaseFor('sandbox');
  }
}

function describe(sandbox: SandboxProcess, portal: string): string[] {
  return [
    `The service runs at ${sandbox.url}`,
    ...['v2.2', 'v2.1', 'v2'].map((version) => `  ${version}: ${sandbox.url}/${version}`),
    `API key: ${sandbox.apiKey}`,
    `Try: curl -H 'X-API-Key: ${sandbox.apiKey}' ${sandbox.apiUrl}/company`,
    `Portal (for 7 days; webhooks are enabled): ${portal}`,
    `Control routes: curl -H 'Authorization: Bearer ${sandbox.controlToken}' ${sandbox.url}/sandbox`,
    'Ctrl-C ends it. Its data stays.',
  ];
}

/** Opens the portal. That needs webhooks (service.md 3.1), which are disabled for a new organization. */
async function openPortal(sandbox: SandboxProcess): Promise<string> {
  // Loaded on demand: most commands only look for a running sandbox.
  const { webhooksOf } = await import('../app/service.ts');
  const webhooks = webhooksOf({ url: sandbox.apiUrl, apiKey: sandbox.apiKey });
  await webhooks.enable(true);
  return await webhooks.portal();
}
