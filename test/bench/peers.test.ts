import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { installDlt, installStripeSync, versions } from '../../bench/peers/install.ts';
import { makeSmallDocuments } from '../../bench/peers/small-documents.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'peers-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Makes a folder whose only program ends as given. */
async function only(program: string, script: string): Promise<NodeJS.ProcessEnv> {
  const path = join(dir, program);
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return { PATH: dir };
}
const installing = (env: NodeJS.ProcessEnv) => ({ dir: join(dir, 'peers'), env, say: () => {} });

describe('the error of a peer names the missing part', () => {
  test('if there is no python3', async () => {
    await expect(installDlt(installing({ PATH: dir }))).rejects.toThrow(
      'the bench of peers needs python3: there is no such program',
    );
  });

  test('if python3 has no venv or pip', async () => {
    const env = await only('python3', '[ "$1" = --version ] || { echo "No module named venv" >&2; exit 1; }');
    await expect(installDlt(installing(env))).rejects.toThrow(
      'the bench of peers needs venv and pip of python3: No module named venv',
    );
  });

  test('if there is no npm', async () => {
    await expect(installStripeSync(installing({ PATH: dir }))).rejects.toThrow(
      'npm could not install @supabase/stripe-sync-engine and stripe: there is no such program',
    );
  });
});

test('a failed installation is repeated, and a complete one is not', async () => {
  const home = join(dir, 'peers', `stripe-sync-engine-${versions.stripeSyncEngine}`);
  await expect(installStripeSync(installing(await only('npm', 'exit 1')))).rejects.toThrow('npm could not');
  await installStripeSync(installing(await only('npm', `: > '${home}/installed'`)));
  await stat(join(home, 'installed'));
  await expect(installStripeSync(installing(await only('npm', 'exit 1')))).resolves.toBe(home);
});

test('every peer is pinned to one version', () => {
  for (const version of Object.values(versions)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
});

test('the pages for peers contain each document once, with about 600 B', () => {
  const { pages, documents, bytes } = makeSmallDocuments(3, 250);
  const parsed = [...pages].map(([path, body]) => ({ path, body: JSON.parse(Buffer.from(body).toString()) }));
  const ids = parsed.flatMap(({ body }) => (body.documents ?? []).map(({ id }: { id: string }) => id));
  expect(new Set(ids).size).toBe(documents);
  expect(ids).toHaveLength(750);
  expect(bytes / documents).toBeGreaterThan(550);
  expect(bytes / documents).toBeLessThan(700);
  const listing = parsed.filter(({ path }) => path.includes(`${parsed[0]?.body[0].id}`));
  expect(listing.map(({ body }) => [body.documents.length, body.hasNext])).toEqual([
    [100, true],
    [100, true],
    [50, false],
  ]);
});
