import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const checkout = resolve(import.meta.dirname, '../..');

/** Prints at the end which files were loaded, and which paths Node itself resolved. */
const recording = `
  import module from 'node:module';
  const [loaded, asked] = [[], []];
  module.registerHooks({
    resolve(specifier, context, next) {
      const ofDrizzle = specifier.startsWith('.') && context.parentURL.includes('/drizzle-orm/');
      if (ofDrizzle || specifier.startsWith('drizzle-orm')) asked.push(specifier);
      return next(specifier, context);
    },
    load(url, context, next) {
      loaded.push([url, context.format]);
      return next(url, context);
    },
  });
  process.on('exit', () => process.stderr.write(JSON.stringify({ loaded, asked })));
`;
const record = `data:text/javascript,${encodeURIComponent(recording)}`;

interface Recorded {
  readonly loaded: readonly (readonly [string, string])[];
  readonly asked: readonly string[];
}

const importing = "await Promise.all(['./app/warehouse.ts', './app/schema.ts'].map((file) => import(file)))";

async function load(...more: string[]): Promise<Recorded> {
  const args = ['--import', record, ...more, '--input-type=module', '--eval', importing];
  const { stderr } = await promisify(execFile)(process.execPath, args, {
    cwd: checkout,
    maxBuffer: 10_000_000,
  });
  return JSON.parse(stderr);
}

const files = ({ loaded }: Recorded) =>
  loaded.filter(([url]) => url.includes('/drizzle-orm/')).map(([url, format]) => `${format} ${url}`);

test("resolves Drizzle's files like Node, and does not ask Node for any of them twice", async () => {
  const [plain, quick] = await Promise.all([
    load(),
    load('--import', resolve(checkout, 'cli/quick-start.ts')),
  ]);
  expect(files(plain).length).toBeGreaterThan(90);
  expect(files(quick).sort()).toEqual(files(plain).sort());
  expect(plain.asked.length).toBeGreaterThan(200);
  expect([...quick.asked].sort()).toEqual([
    'drizzle-orm',
    'drizzle-orm/migrator',
    'drizzle-orm/node-postgres',
    'drizzle-orm/pg-core',
  ]);
});
