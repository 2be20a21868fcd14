import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/**
 * Variables that any child process gets: where programs and folders are, language and time zone. Whoever can read a
 * child's environment, or run a program in it, finds no secret of ours there.
 */
const plain: readonly string[] = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'LC_CTYPE', 'LC_MESSAGES', 'TZ'],
  ...['TMPDIR', 'TMP', 'TEMP', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH'],
  ...['SYSTEMROOT', 'SYSTEMDRIVE', 'COMSPEC', 'PATHEXT', 'USERPROFILE', 'APPDATA', 'LOCALAPPDATA'],
];

/** What a package installer needs besides to reach a registry: proxies, certificates, and settings of its own. */
const ofInstallers =
  /^(?:(?:https?|all|no)_proxy|ssl_cert_(?:file|dir)|(?:requests|curl)_ca_bundle|netrc|xdg_(?:config|cache)_home|(?:pip|uv)_.+)$/i;

/** The environment of a child process: the plain variables of ours, and `more`. */
export function childEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  // Windows writes some of them in other letters, as Path.
  return { ...chosen((name) => plain.includes(name.toUpperCase())), ...more };
}

/** The environment of pip and uv. An index may need credentials, which stand in variables of theirs. */
export function installerEnvironment(): Record<string, string> {
  return childEnvironment(chosen((name) => ofInstallers.test(name)));
}

/** Where programs keep for the user what can be had again. */
export function cacheHome(): string {
  const { XDG_CACHE_HOME } = process.env;
  // The specification has it that a relative one counts for nothing.
  return XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
}

function chosen(wanted: (name: string) => boolean): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => wanted(name));
  return Object.fromEntries(entries) as Record<string, string>;
}
