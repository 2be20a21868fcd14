import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findBanned, verifyWords } from '../../verify/words.ts';
import { temporaryFolder } from '../support/folder.ts';

test.each([
  ['// It was looked for in vain.', 'in vain', 'without success'],
  ["test('the state that an event told of is kept', run);", 'told', 'reported, named, notified'],
  ['max(recorded_at) as told_at', 'told_at', 'reported, named, notified'],
  ["comment on table a is 'A row of whose day nothing is known.';", 'of whose', 'whose, of which'],
  ['const believed = read();', 'believed', 'accepts'],
  ['Perhaps it comes later.', 'Perhaps', 'may'],
])('%s has a banned word', (text, word, instead) => {
  expect(findBanned(text)).toEqual([{ line: 1, word, instead }]);
});

test('a phrase is found across the end of a line, also in a comment', () => {
  expect(findBanned('one\n * it was tried in\n   * vain')).toMatchObject([{ line: 2, word: 'in vain' }]);
  expect(findBanned('-- an event tells\n-- of it')).toMatchObject([{ line: 1, word: 'tells of' }]);
});

test('words of the field are accepted, also those that contain a banned one', () => {
  expect(
    findBanned('Tombstones rows that no listing contains; believed_at is a column; unbelievable'),
  ).toEqual([]);
});

test('problems name file, line, word and what to write instead, in code and pages', async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  // dbt makes folders whose names end like a file's.
  for (const dir of ['db', 'docs', 'node_modules/package', 'dbt/target/compiled/schema.yml'])
    mkdirSync(join(folder.path, dir), { recursive: true });
  writeFileSync(join(folder.path, 'db/read.ts'), 'const one = 1;\n/** Buried rows. */\n');
  writeFileSync(join(folder.path, 'docs/page.md'), 'It is tried in vain.\n');
  writeFileSync(join(folder.path, 'docs/good.md'), 'It is tried without success.\n');
  writeFileSync(join(folder.path, 'node_modules/package/README.md'), 'Perhaps.\n');
  expect(verifyWords(folder.path)).toEqual([
    'db/read.ts:2: "Buried": write tombstones',
    'docs/page.md:1: "in vain": write without success',
  ]);
});
