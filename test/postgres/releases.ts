import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { type PostgresRelease, postgresPackage } from '../../embedded/postgres.ts';
import type { PostgresBinaries } from '../../embedded/process.ts';

/** Versions of the npm packages with Postgres's programs; that of version 18 is in package.json. */
const versions = { 15: '15.18.0-beta.17', 16: '16.14.0-beta.17', 17: '17.10.0-beta.17' } as const;

export type Major = keyof typeof versions | 18;

/** The supported versions of Postgres, the oldest first. */
export const majors: readonly Major[] = [15, 16, 17, 18];

/** initdb of 15 and 16 lacks the built-in locale provider, so they use the C library's. */
const libraryLocale: readonly string[] = ['--locale=C.UTF-8'];

/**
 * Finds the programs of a version, or fetches them with npm into .metersync; undefined for the version in
 * package.json. Throws an Error that says what is missing.
 */
export async function findRelease(major: Major): Promise<PostgresRelease | undefined> {
  if (major === 18) return undefined;
  const version = versions[major];
  const folder = resolve(import.meta.dirname, '../../.metersync', `postgres-${version}`);
  const name = postgresPackage();
  if (!existsSync(folder)) await fetchPackage(`${name}@${version}`, folder);
  const programs = join(folder, 'node_modules', name, 'dist/index.js');
  const binaries = (await import(pathToFileURL(programs).href)) as PostgresBinaries;
  return { binaries, locale: libraryLocale };
}

async function fetchPackage(wanted: string, folder: string): Promise<void> {
  await mkdir(resolve(folder, '..'), { recursive: true });
  const fresh = await mkdtemp(`${folder}-fetched-`);
  try {
    await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--prefix', fresh, wanted]);
    await rename(fresh, folder);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    const said = (error as { stderr?: string }).stderr ?? (error as Error).message;
    throw new Error(`npm could not fetch ${wanted}, the programs of Postgres for this machine:\n${said}`);
  }
}
