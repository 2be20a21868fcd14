import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import { expect, test } from 'vitest';
import * as metersync from '../../db/schema/metersync.ts';
import * as ops from '../../db/schema/ops.ts';
import * as utility from '../../db/schema/utility.ts';

const root = resolve(import.meta.dirname, '../..');
const tables = [utility, metersync, ops].flatMap((schema) =>
  Object.values(schema).filter((one) => one instanceof PgTable),
);
const names = tables.map((table) => {
  const { schema, name } = getTableConfig(table);
  return `${schema}.${name}`;
});
const literal = new RegExp(`\\b(${names.map((name) => name.replace('.', '\\.')).join('|')})\\b(?!\\.ts|: )`);

/** Returns a line without its comments. */
const code = (line: string): string => line.replace(/^\s*(\*|\/\/|\/\*).*|--.*$/, '');

const files = globSync('db/**/*.ts', { cwd: root }).sort();
const read = (file: string): string => readFileSync(resolve(root, file), 'utf8');

test('statements name tables through the schema', () => {
  expect(names.length).toBeGreaterThan(30);
  expect('from utility.documents d').toMatch(literal);
  const found = files
    .filter((file) => !/^db\/schema\//.test(file))
    .flatMap((file) =>
      read(file)
        .split('\n')
        .flatMap((line, at) => (literal.test(code(line)) ? [`${file}:${at + 1} ${line.trim()}`] : [])),
    );
  expect(found).toEqual([]);
});

const raw = /\.execute(<[^(]*>)?\(/;

/** Files that may contain raw statements: hot statements, and commands that the query builder lacks. */
const mayBeRaw = [
  /^db\/hot\//,
  /^db\/migrate\//,
  /^db\/fields\/typed-views\.ts$/,
  /^db\/connection\/(analyse-young|estimate|hot|locks|temp-table)\.ts$/,
];

test('only hot statements are raw, all others use the query builder', () => {
  const found = files.filter((file) => raw.test(read(file)));
  const wrong = found.filter((file) => !mayBeRaw.some((place) => place.test(file)));
  expect(wrong).toEqual([]);
});

test('each file of db/hot sends one statement, and there are at most 25 files', () => {
  const hot = files.filter((file) => file.startsWith('db/hot/'));
  expect(hot.length).toBeLessThanOrEqual(25);
  const sent = hot.map((file) => {
    const statements = [...read(file).matchAll(/\bhot\(\w+, '(\w+)'\)\s*\.execute\b/g)].map(
      ([, name]) => name,
    );
    return [file, ...statements];
  });
  const named = hot.map((file) => {
    const words = file.replace(/^db\/hot\/(.*)\.ts$/, '$1').split('-');
    return [
      file,
      words.map((word, at) => (at === 0 ? word : `${word[0]?.toUpperCase()}${word.slice(1)}`)).join(''),
    ];
  });
  expect(sent).toEqual(named);
});
