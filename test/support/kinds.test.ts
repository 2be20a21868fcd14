import { globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import config from '../../vitest.config.ts';

/** Each kind of tests has its files by their suffix, and starts what they need; see CONTRIBUTING.md. */
const checkout = resolve(import.meta.dirname, '../..');
const kindOf = (file: string): string => /\.(\w+)\.test\.ts$/.exec(file)?.[1] ?? 'plain';

/** Files that start a browser, and those that start processes. */
const browser = 'test/support/browser.ts';
const starting = [
  'test/support/command-process.ts',
  'test/embedded/owner-process.ts',
  'test/support/debian.ts',
];
/** The servers of a run come by the first of these functions; the second starts the bench's own. */
const serving = /\b(?:inject|startBenchStack)\(/;

interface Source {
  readonly imports: readonly string[];
  readonly serves: boolean;
}
const sources = new Map<string, Source>();

/** Reads a file once, as many others import it. */
function sourceOf(file: string): Source {
  const known = sources.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(join(checkout, file), 'utf8');
  const imports = [...text.matchAll(/^(?:import|export) (?!type )[^;]*?'(\.[^']+\.ts)';/gm)];
  const source = {
    imports: imports.map(([, path = '']) => join(dirname(file), path)),
    serves: file.startsWith('test/') && serving.test(text),
  };
  sources.set(file, source);
  return source;
}

/** Lists the files that a file imports when it is loaded, directly or through others, and itself. */
function loadedBy(file: string): Set<string> {
  const loaded = new Set([file]);
  for (const one of loaded) for (const path of sourceOf(one).imports) loaded.add(path);
  return loaded;
}

/** Says of which kind a file has to be. */
function neededBy(file: string): string {
  const loaded = loadedBy(file);
  if (loaded.has(browser)) return 'browser';
  const needs = [...loaded].some((one) => starting.includes(one) || sourceOf(one).serves);
  return needs ? 'servers' : 'plain';
}

test('each test file needs what its suffix says, no more and no less', () => {
  const self = 'test/support/kinds.test.ts';
  const files = globSync('test/**/*.test.ts', { cwd: checkout }).filter((file) => file !== self);
  expect(new Set(files.map(kindOf))).toEqual(new Set(['plain', 'servers', 'browser']));
  const wrong = files.filter((file) => kindOf(file) !== neededBy(file));
  expect(wrong.map((file) => `${file} is of kind ${neededBy(file)}`)).toEqual([]);
});

test('plain tests start nothing: their kind has no globalSetup', () => {
  const projects = config.test?.projects ?? [];
  const started = projects.map((project) => {
    if (typeof project !== 'object' || !('test' in project)) throw new Error('no project');
    return [project.test?.name, project.test?.globalSetup ?? []];
  });
  const servers = ['test/support/stack.ts', 'test/support/warehouse-template.ts'];
  expect(Object.fromEntries(started)).toEqual({
    plain: [],
    servers,
    browser: [...servers, 'test/support/chromium.ts'],
  });
});
