import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** The version of the server. The server inside the CLI that is fetched has the same minor version. */
export const serverVersion = '1.32.2';

const temporalModule = 'go.temporal.io/server';
/** The folder of the programs, which git ignores. They take some 220 MB and are built once. */
const cache = resolve(import.meta.dirname, `../../.metersync/temporal-server-${serverVersion}`);
/** The folder in which Go's own installer puts Go. It is searched in addition to the folders of PATH. */
const goFolder = '/usr/local/go/bin';

export interface Programs {
  readonly server: string;
  /** The program that creates the schemas of Temporal's databases. */
  readonly sqlTool: string;
}

/**
 * Builds Temporal's server and schema tool from Go's module proxy, in 6 minutes of processor time, or finds
 * earlier builds. Throws an Error that says what is missing.
 */
export async function temporalPrograms(say: (line: string) => void): Promise<Programs> {
  const programs = { server: join(cache, 'server'), sqlTool: join(cache, 'sql') };
  if (existsSync(cache)) return programs;
  const go = findGo(`${process.env.PATH}${delimiter}${goFolder}`);
  say(`building Temporal's server ${serverVersion} with ${go}: some minutes of processor, once`);
  await mkdir(dirname(cache), { recursive: true });
  const folder = await mkdtemp(`${cache}-building-`);
  try {
    const packages = ['cmd/server', 'cmd/tools/sql'].map(
      (path) => `${temporalModule}/${path}@v${serverVersion}`,
    );
    await promisify(execFile)(go, ['install', '-trimpath', '-ldflags=-s -w', ...packages], {
      // The server's module names the Go compiler that it needs, and Go then fetches that compiler.
      env: { ...process.env, GOBIN: folder, GOTOOLCHAIN: 'auto' },
      maxBuffer: Number.POSITIVE_INFINITY,
    });
    await rename(folder, cache);
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    const last = (stderr?.trim() || message).split('\n').slice(-5).join('\n');
    throw new Error(
      `Temporal's server could not be built: Go 1.21 or newer has to reach its module proxy (GOPROXY).\n${last}`,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return programs;
}

/** Finds Go in a search path. @throws Error that says what to do */
export function findGo(searchPath: string): string {
  const found = searchPath
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, 'go'))
    .find(isExecutable);
  if (found !== undefined) return found;
  throw new Error(
    "Go is missing: Temporal's server is built from its source. Install it (https://go.dev/doc/install), so that `go` is on PATH.",
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
