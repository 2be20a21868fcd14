import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

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
