import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { viewTexts } from '../../db/migrate/apply-views.ts';
import { temporaryFolder } from '../support/folder.ts';

async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  }
  return folder.path;
}

const view = (name: string, from: string) => `create or replace view ${name} as select * from ${from};\n`;

test('each file comes after the files that it names, with the schema first and comments last', async () => {
  const folder = await folderOf({
    'comments/a.sql': 'comments',
    'functions/analytics.z.sql': 'create or replace function analytics.z() returns integer return 1;',
    'schema.sql': 'schema',
    'views/analytics.a.sql': view('analytics.a', 'analytics.c'),
    'views/analytics.b.sql': `-- Beside analytics.c.\n${view('analytics.b', 'utility.sites')}comment on view analytics.b is 'Beside analytics.c.';\n`,
    'views/analytics.c.sql': view('analytics.c', 'analytics.d, analytics.z()'),
    'views/analytics.d.sql': view('analytics.d', 'utility.sites'),
  });
  const made = viewTexts(folder).map((text) => /(?:view|function) (\w+\.\w)/.exec(text)?.[1] ?? text);
  expect(made).toEqual([
    'schema',
    'analytics.z',
    'analytics.d',
    'analytics.c',
    'analytics.a',
    'analytics.b',
    'comments',
  ]);
});

test('an error names files that depend on one another', async () => {
  const folder = await folderOf({
    'views/analytics.a.sql': view('analytics.a', 'analytics.b'),
    'views/analytics.b.sql': view('analytics.b', 'analytics.a'),
  });
  expect(() => viewTexts(folder)).toThrow(
    'files name one another: views/analytics.a.sql → views/analytics.b.sql → views/analytics.a.sql',
  );
});

test('a template replaces its reference, with the given arguments', async () => {
  const folder = await folderOf({
    'templates/rows.sql': '-- Not shown.\nselect {{what}} from {{table}}{{more}}\n',
    'views/analytics.a.sql':
      'create or replace view analytics.a as {{rows what="id, \'x\'" table="utility.sites"}};\n',
  });
  expect(viewTexts(folder)).toEqual([
    "create or replace view analytics.a as select id, 'x' from utility.sites;\n",
  ]);
});
