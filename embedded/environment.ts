import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/**
 * Variables that any child process gets: paths of programs and folders, language and time zone. So others who
 * can read a child's environment, or run a program in it, find no secret of ours there.
 */
const plain: readonly string[] = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'LC_MESSAGES',
  'TZ',
  'TMPDIR',
  'TMP',
  'TEMP',
  'LD_LIBRARY_PATH',
  'DYLD_LIBRARY_PATH',
  'SYSTEMROOT',
  'SYSTEMDRIVE',
  'COMSPEC',
  'PATHEXT',
  'USERPROFILE',
  'APPDATA',
  'LOCALAPPDATA',
];

/**
 * Further variables that a package installer needs to reach a registry: proxies, certificates, its own
 * settings.
 */
const ofInstallers =
  /^(?:(?:https?|all|no)_proxy|ssl_cert_(?:file|dir)|(?:requests|curl)_ca_bundle|netrc|xdg_(?:config|cache)_home|(?:pip|uv)_.+)$/i;

/**
 * Makes the environment of a child process: our plain variables, and `more`. Temporal does not start where neither
 * USER nor the system names the user, as in a container that runs under any user id.
 */
export function childEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  // Windows writes some names in other case, as Path.
  const nameless = process.getuid === undefined ? {} : { USER: String(process.getuid()) };
  return { ...nameless, ...chosen((name) => plain.includes(name.toUpperCase())), ...more };
}

/** Makes the environment of pip and uv, including the credentials of an index in their own variables. */
export function installerEnvironment(): Record<string, string> {
  return childEnvironment(chosen((name) => ofInstallers.test(name)));
}

/** Returns the user's folder for caches. */
export function cacheHome(): string {
  const { XDG_CACHE_HOME } = process.env;
  // The XDG specification ignores a relative path.
  return XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
}

function chosen(wanted: (name: string) => boolean): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => wanted(name));
  return Object.fromEntries(entries) as Record<string, string>;
}
