import { existsSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';

/** Reads this package's version; package.json is two folders up in a checkout, three when built into dist. */
export function readVersion(): string {
  const place = ['../../package.json', '../../../package.json']
    .map((path) => new URL(path, import.meta.url))
    .find(existsSync);
  return place === undefined ? 'unknown' : JSON.parse(readFileSync(place, 'utf8')).version;
}

/** The user of the system, by number if it has no name. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
