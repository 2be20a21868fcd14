import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const checkout = resolve(import.meta.dirname, '../..');
const outside = ['test', 'bench', 'verify'];

/** Reads rooms and their allowed imports from the table of ARCHITECTURE.md. */
function arrowsOnPaper(): Map<string, string[]> {
  const text = readFileSync(join(checkout, 'ARCHITECTURE.md'), 'utf8');
  const [section = ''] = text.split('## Rooms and arrows')[1]?.split('\n## ') ?? [];
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
  expect(files.length).toBeGreaterThan(400);
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
