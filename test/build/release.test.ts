import { execFile } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folder.ts';
import { checkout } from './package.ts';

const kustomization = 'deploy/kubernetes/base/kustomization.yaml';

/** Makes a repository that .ci/release can release, whose gate ends with a status. */
async function repository(status: number) {
  const { path, remove } = await temporaryFolder();
  onTestFinished(remove);
  const run = async (program: string, ...args: string[]): Promise<string> =>
    (await promisify(execFile)(program, args, { cwd: path })).stdout;
  for (const file of ['.ci/release', 'package.json', 'package-lock.json', kustomization])
    await cp(join(checkout, file), join(path, file));
  await mkdir(join(path, '.ci'), { recursive: true });
  await writeFile(join(path, '.ci/run'), `exit ${status}`);
  await writeFile(join(path, '.ci/package'), '');
  await writeFile(join(path, 'CHANGELOG.md'), '## [Unreleased]\n\n### Fixed\n\n- Something.\n');
  await run('git', 'init', '--quiet');
  await run('git', 'config', 'user.name', 'metersync');
  await run('git', 'config', 'user.email', 'metersync@example.org');
  await run('git', 'add', '.');
  await run('git', 'commit', '--quiet', '--message', 'Before');
  return run;
}

test('a release names its version everywhere that tests look for it, and tags that commit', async () => {
  const run = await repository(0);
  await run('bash', '.ci/release', '9.8.7');
  const released = (file: string) => run('git', 'show', `9.8.7:${file}`);
  expect(JSON.parse(await released('package.json'))).toMatchObject({ version: '9.8.7' });
  expect(await released('CHANGELOG.md')).toMatch(/^## \[Unreleased\]\n\n## \[9\.8\.7\] - \d{4}-/);
  expect(await released(kustomization)).toContain('newTag: 9.8.7\n');
  expect(await run('git', 'status', '--porcelain')).toBe('');
});

test('a release whose gate fails leaves nothing behind', async () => {
  const run = await repository(1);
  await expect(run('bash', '.ci/release', '9.8.7')).rejects.toThrow();
  expect(await run('git', 'status', '--porcelain')).toBe('');
  expect(await run('git', 'tag')).toBe('');
});
