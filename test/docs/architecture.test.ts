import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const checkout = resolve(import.meta.dirname, '../..');
const page = readFileSync(join(checkout, 'ARCHITECTURE.md'), 'utf8');
const outside = ['test', 'bench', 'verify'];

/** Reads rooms and their allowed imports from the table of ARCHITECTURE.md. */
function arrowsOnPaper(): Map<string, string[]> {
  const [section = ''] = page.split('## Rooms and arrows')[1]?.split('\n## ') ?? [];
  const rows = [...section.matchAll(/^\| `(\w+)\/` \|.*\| ([^|]+) \|$/gm)];
  return new Map(rows.map(([, room = '', imports = '']) => [room, imports.split(', ')]));
}

test('dependency-cruiser refuses exactly the imports that ARCHITECTURE.md does not name', async () => {
  const arrows = arrowsOnPaper();
  const rooms = [...arrows.keys()];
  expect(rooms).toContain('receiver');
  const folder = await mkdtemp(join(tmpdir(), 'metersync-arrows-'));
  try {
    await writeFile(join(folder, 'package.json'), '{}');
    for (const room of [...rooms, ...outside]) {
      await mkdir(join(folder, room));
      await writeFile(join(folder, room, 'target.ts'), 'export const target = 1;\n');
    }
    for (const from of rooms) {
      for (const to of [...rooms, ...outside].filter((other) => other !== from)) {
        const use = `import { target } from '../${to}/target.ts';\nexport const used = target;\n`;
        await writeFile(join(folder, from, `uses-${to}.ts`), use);
      }
      const types =
        "import type { target } from '../activities/target.ts';\nexport type Used = typeof target;\n";
      await writeFile(join(folder, from, 'uses-types.ts'), types);
    }
    const allowed = (from: string, to: string) => arrows.get(from)?.includes(to) ?? false;
    const expected = rooms.flatMap((from) => [
      ...[...rooms, ...outside]
        .filter((to) => to !== from && !allowed(from, to))
        .map((to) => `${from}/uses-${to}.ts`),
      ...(from === 'activities' || allowed(from, 'activities') || allowed(from, 'types of activities')
        ? []
        : [`${from}/uses-types.ts`]),
    ]);
    expect((await refused(folder)).sort()).toEqual(expected.sort());
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('no room re-exports what another room has', () => {
  const rooms = [...arrowsOnPaper().keys()];
  const reExport = /^export (?:type )?(?:\*|\{[^}]*\})[^;]*? from '(\.[^']+)'/gm;
  const files = globSync(`{${rooms.join(',')}}/**/*.ts`, { cwd: checkout });
  const found = files.flatMap((file) => {
    const [room = ''] = file.split('/');
    const text = readFileSync(join(checkout, file), 'utf8');
    return [...text.matchAll(reExport)]
      .map(([, from = '']) => relative(checkout, resolve(checkout, file, '..', from)))
      .filter((from) => !from.startsWith(`${room}/`))
      .map((from) => `${file} re-exports of ${from}`);
  });
  expect(files.length).toBeGreaterThan(200);
  expect(found).toEqual([]);
});

/** Lists the files whose import is refused. */
async function refused(folder: string): Promise<string[]> {
  const cruise = join(checkout, 'node_modules/.bin/depcruise');
  const args = ['--config', join(checkout, '.dependency-cruiser.cjs'), '--output-type', 'json', '.'];
  const { stdout } = await promisify(execFile)(cruise, args, {
    cwd: folder,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { stdout: string }) => error);
  const { summary } = JSON.parse(stdout) as { summary: { violations: { from: string }[] } };
  return [...new Set(summary.violations.map(({ from }) => from))];
}

/** The files that a file imports, as paths from the checkout. */
const importsOf = (path: string): string[] =>
  [...readFileSync(join(checkout, path), 'utf8').matchAll(/ from '(\.[^']+)';/g)].map(([, target = '']) =>
    join(path, '..', target),
  );

const [, section = ''] = page.split('## Three paths, file by file');
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
