import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const checkout = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');

/** The files that a file imports, as paths from the checkout. */
const importsOf = (path: string): string[] =>
  [...read(path).matchAll(/ from '(\.[^']+)';/g)].map(([, target = '']) => join(path, '..', target));

const [, section = ''] = read('ARCHITECTURE.md').split('## Three paths, file by file');
const [lists = ''] = section.split('\n## ');
const paths = [...lists.matchAll(/^- \*\*(.+?)\*\*: ([^.][\s\S]*?`)\.$/gm)].map(
  ([, name = '', files = '']) =>
    [name, [...files.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file)] as const,
);

/** Files that Temporal starts. No earlier file of a path imports them. */
const started = ['workflows/registry.ts', 'activities/create-activities.ts'].flatMap(importsOf);

test('there are three paths', () => {
  expect(paths.map(([name]) => name)).toEqual(['An event', 'A page of a backfill', 'A range of readings']);
});

test.each(paths)('%s: at most 30 files, each of them imported by an earlier file', (_, files) => {
  expect(files.length).toBeLessThanOrEqual(30);
  expect(new Set(files).size).toBe(files.length);
  const strangers = files.filter(
    (file, at) =>
      at > 0 &&
      !started.includes(file) &&
      !files.slice(0, at).some((earlier) => importsOf(earlier).includes(file)),
  );
  expect(strangers).toEqual([]);
});
