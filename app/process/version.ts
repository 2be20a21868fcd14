import { existsSync, readFileSync } from 'node:fs';

/** Reads this package's version; package.json is two folders up in a checkout, three when built into dist. */
export function readVersion(): string {
  const place = ['../../package.json', '../../../package.json']
    .map((path) => new URL(path, import.meta.url))
    .find(existsSync);
  return place === undefined ? 'unknown' : JSON.parse(readFileSync(place, 'utf8')).version;
}
