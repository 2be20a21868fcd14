import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import type { Socket } from 'node:net';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Identifies a process, and distinguishes it from a later process with the same pid. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, in the system's own form. */
  started: string;
}

/** Identifies a running process. A zombie counts as ended: in a container nothing may reap it. */
export function identify(pid: number): ProcessIdentity | undefined {
  if (process.platform === 'linux') return identifyOnLinux(pid);
  // Two terminals may have different languages, and a laptop may be in another time zone tomorrow.
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  const { stdout } = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8', env });
  const [state = 'Z', ...started] = stdout.trim().split(/\s+/);
  return stdout.trim() === '' || state.startsWith('Z') ? undefined : { pid, started: started.join(' ') };
}

export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started;
}

const waitMs = 20_000;

/** Ends a process by each signal in turn, SIGKILL last. Throws if the process belongs to another user. */
export async function endProcess(
  identity: ProcessIdentity,
  signals: readonly NodeJS.Signals[],
): Promise<void> {
  for (const name of [...signals, 'SIGKILL' as const]) {
    if (!isRunning(identity)) return;
    try {
      process.kill(identity.pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    const deadline = Date.now() + waitMs;
    while (Date.now() < deadline && isRunning(identity)) await delay(20);
  }
}

/** Reads fields 3 (state) and 22 (start since the boot) of /proc/PID/stat; field 2 may hold spaces. */
function identifyOnLinux(pid: number): ProcessIdentity | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return { pid, started: `${boot}/${fields[19]}` };
  } catch {
    return undefined;
  }
}

/** The user as which Postgres runs if this process is root, because Postgres refuses to run as root. */
export interface PostgresAccount {
  uid: number;
  gid: number;
}

export interface PostgresBinaries {
  postgres: string;
  initdb: string;
}

/** Start of the data folder's path if the account cannot enter the usual folder, for example in /root. */
const dataElsewhere = '/var/lib/metersync-';

/**
 * Finds the account of Postgres if this process is root: the owner of the data, or the system's `postgres`.
 */
export function accountFor(data: string): PostgresAccount | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = statSync(data, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const idOf = (what: string) => spawnSync('id', [what, 'postgres'], { encoding: 'utf8' }).stdout?.trim();
  if (!idOf('-u')) spawnSync('useradd', ['--system', '--user-group', '--no-create-home', 'postgres']);
  const [uid, gid] = [idOf('-u'), idOf('-g')];
  if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  throw new EmbeddedError(
    'Postgres refuses to run as root, and no system user `postgres` could be created for it.\n' +
      'Create one (`useradd --system postgres`), run as another user, or set DATABASE_URL to a Postgres of your own.',
  );
}

/** Returns the path of existing or new data that the account can enter; a link in `dir` leads to data elsewhere. */
export function reachableData(dir: string, account: PostgresAccount | undefined): string {
  const data = join(dir, 'postgres');
  if (account === undefined) return data;
  if (existsSync(data)) return realpathSync(data);
  if (canEnter(account, dir)) return data;
  const home = mkdtempSync(dataElsewhere);
  chmodSync(home, 0o711);
  rmSync(data, { force: true });
  symlinkSync(join(home, 'postgres'), data);
  return readlinkSync(data);
}

/** Returns the folder outside of `dir` that was made for its data, if any. */
export function homeElsewhere(dir: string): string | undefined {
  try {
    const home = dirname(readlinkSync(join(dir, 'postgres')));
    return new RegExp(`^${dataElsewhere}\\w{6}$`).test(home) ? home : undefined;
  } catch {
    return undefined;
  }
}

/** Returns programs that the account can run: these, or else a copy made at each start (60 MB, 0.3 s). */
export function reachableBinaries(
  binaries: PostgresBinaries,
  account: PostgresAccount | undefined,
  enterable: string,
): PostgresBinaries {
  const native = dirname(dirname(binaries.postgres));
  if (account === undefined || canEnter(account, native)) return binaries;
  const copy = join(enterable, 'programs');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  const inCopy = (program: string) => join(copy, 'bin', basename(program));
  return { postgres: inCopy(binaries.postgres), initdb: inCopy(binaries.initdb) };
}

/** Whether the account can enter a folder, which needs the right to enter every folder above it. */
function canEnter(account: PostgresAccount, path: string): boolean {
  const options = { ...account, cwd: '/', env: childEnvironment() };
  return spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', path], options).status === 0;
}

/** Variables that any child process gets: paths, language and time zone. They contain no secret. */
const plain =
  /^(?:path|home|user|logname|lang|lc_(?:all|ctype|messages)|tz|tmpdir|tmp|temp|(?:dy)?ld_library_path|system(?:root|drive)|comspec|pathext|userprofile|(?:local)?appdata)$/i;

/** Further variables that pip needs to reach a registry: proxies, certificates, its own settings. */
const ofInstallers =
  /^(?:(?:https?|all|no)_proxy|ssl_cert_(?:file|dir)|(?:requests|curl)_ca_bundle|netrc|xdg_(?:config|cache)_home|(?:pip|uv)_.+)$/i;

/**
 * Makes the environment of a child process. USER is always set: Temporal does not start if neither USER nor
 * the system names the user, for example in a container with an arbitrary user id.
 */
export function childEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const nameless = process.getuid === undefined ? {} : { USER: String(process.getuid()) };
  return { ...nameless, ...chosen(plain), ...more };
}

/** Makes the environment of pip, including the credentials of an index in its own variables. */
export function installerEnvironment(): Record<string, string> {
  return childEnvironment(chosen(ofInstallers));
}

export function cacheHome(): string {
  const { XDG_CACHE_HOME } = process.env;
  // The XDG specification ignores a relative path.
  return XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
}

function chosen(wanted: RegExp): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => wanted.test(name));
  return Object.fromEntries(entries) as Record<string, string>;
}

/** The embedded stack could not be started. The message is for people and says what to do. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
}

export interface ServerCommand {
  name: ServerName;
  command: string;
  args: string[];
  /** Variables in addition to those that every child process gets. */
  env?: Record<string, string>;
  /** The folder to run in; `/` when not given. */
  cwd?: string;
  /** The user to run as; this process's user by default. */
  user?: { uid: number; gid: number };
  /** The file to which its output is appended. */
  logFile: string;
}

/** A server that was started, and how it ended, for example "SIGKILL" or "status 1". */
interface Launched {
  readonly identity: ProcessIdentity | undefined;
  readonly ended: Promise<string>;
}

/** SIGINT makes Postgres end its clients and write a checkpoint. After SIGQUIT, it replays the WAL. */
const stopSignals = { postgres: ['SIGINT', 'SIGQUIT'], temporal: ['SIGTERM'] } as const;

const readyWithinMs = 60_000;

const logBytesMax = 16 * 1024 * 1024;

/** Starts a server in its own session, out of reach of Ctrl-C. It is stopped when this process ends. */
export function launch(server: ServerCommand): Launched {
  const { command, args, env, cwd = '/', user, logFile } = server;
  if (existsSync(logFile) && statSync(logFile).size > logBytesMax) renameSync(logFile, `${logFile}.old`);
  const log = openSync(logFile, 'a', 0o600);
  // The files of the databases hold customers' data, so only their owner may read them.
  const child = spawn('/bin/sh', ['-c', 'umask 077; exec "$@"', 'sh', command, ...args], {
    detached: true,
    cwd,
    env: childEnvironment(env),
    stdio: ['ignore', log, log],
    ...user,
  });
  closeSync(log);
  child.unref();
  const watcher = endWithUs(child.pid ?? 0, stopSignals[server.name][0]);
  const ended = once(child, 'exit').then(
    ([status, signal]) => signal ?? `status ${status}`,
    (error: Error) => error.message,
  );
  ended.finally(() => watcher.kill('SIGKILL'));
  return { identity: identify(child.pid ?? 0), ended };
}

/** Starts a shell that signals a process when this process has ended, which closes the shell's input. */
function endWithUs(pid: number, signal: string) {
  const script = 'read -r _; kill -s "$1" "$2"';
  const watcher = spawn('/bin/sh', ['-c', script, 'sh', signal.replace('SIG', ''), String(pid)], {
    detached: true,
    cwd: '/',
    env: childEnvironment(),
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return watcher;
}

/** Waits until a new server answers. Throws an EmbeddedError with the end of its log if it does not. */
export async function untilReady(
  server: ServerCommand,
  { ended }: Launched,
  answers: () => Promise<boolean>,
): Promise<void> {
  let how: string | undefined;
  ended.then((text) => {
    how = text;
  });
  for (const deadline = Date.now() + readyWithinMs; ; await delay(20)) {
    const ready = await answers();
    // Checked first, because another server may answer on the port of a server that has ended.
    if (how !== undefined) throw failed(server, `ended at once (${how})`);
    if (ready) return;
    if (Date.now() > deadline) throw failed(server, `did not answer within ${readyWithinMs / 1000} s`);
  }
}

/** Stops the servers at the same time and returns when they have ended. */
export async function endServers(servers: Partial<Record<ServerName, ProcessIdentity>>): Promise<void> {
  const names = Object.keys(servers) as ServerName[];
  await Promise.all(names.map((name) => servers[name] && endProcess(servers[name], stopSignals[name])));
}

export function failed({ name, command, logFile }: ServerCommand, how: string): EmbeddedError {
  const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-8);
  const end = lines.map((line) => `  ${line}`).join('\n');
  return new EmbeddedError(`The ${name} server (${command}) ${how}. The end of its log, ${logFile}:\n${end}`);
}

export type ServerName = 'postgres' | 'temporal';
