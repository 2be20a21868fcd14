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
