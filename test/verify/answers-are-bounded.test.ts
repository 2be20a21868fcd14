import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const checkout = resolve(import.meta.dirname, '../..');

/** Runs the plugins of biome.json over these files; returns the places that they refuse. */
function refused(files: Readonly<Record<string, readonly string[]>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'metersync-lint-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { plugins } = JSON.parse(readFileSync(join(checkout, 'biome.json'), 'utf8'));
  writeFileSync(join(folder, 'biome.json'), JSON.stringify({ plugins }));
  cpSync(join(checkout, 'verify'), join(folder, 'verify'), { recursive: true });
  for (const [path, lines] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), lines.join('\n'));
  }
  const biome = join(checkout, 'node_modules/.bin/biome');
  const args = [
    'lint',
    '--only=plugin',
    '--max-diagnostics=none',
    '--reporter=github',
    ...Object.keys(files),
  ];
  const { stdout, stderr } = spawnSync(biome, args, { cwd: folder, encoding: 'utf8' });
  const found = [...stdout.matchAll(/title=plugin,file=([^,]+),line=(\d+)/g)];
  if (found.length === 0) throw new Error(stderr || stdout);
  return found.map(([, path, line]) => `${path?.replace(`${folder}/`, '')}:${line}`).sort();
}

test('the lint refuses every way to read a whole answer at once, except in tests', () => {
  const unbounded = [
    "import { text } from 'node:stream/consumers';",
    "export const answer = await fetch('http://metersync.example');",
    "export const posted = await fetch('http://metersync.example', { method: 'POST' });",
    ...['text', 'json', 'arrayBuffer', 'blob', 'bytes', 'formData'].flatMap((read) => [
      `await answer.${read}();`,
      `await answer.body?.${read}();`,
    ]),
  ];
  const bounded = ["import { ask } from '../http/ask.ts';", 'await ask(url, { withinMs });'];
  expect(refused({ 'activities/a.ts': unbounded, 'cli/b.ts': bounded, 'test/c.ts': unbounded })).toEqual(
    unbounded.map((_, at) => `activities/a.ts:${at + 1}`).sort(),
  );
});
