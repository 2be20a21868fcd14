import { createHash } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { expect, test } from 'vitest';
import { type Lock, problemsOfLock } from '../../verify/lock.ts';

const checkout = resolve(import.meta.dirname, '../..');
const lock = JSON.parse(readFileSync(resolve(checkout, 'package-lock.json'), 'utf8')) as Lock;

test('Node is a package of the lock file, with a digest and without an install script', () => {
  const program = realpathSync(resolve(checkout, 'node_modules/.bin/node'));
  const [name = ''] = relative(realpathSync(resolve(checkout, 'node_modules')), program).split(sep);
  const locked = lock.packages[`node_modules/${name}`];
  expect(locked).toMatchObject({
    version: process.versions.node,
    integrity: expect.stringMatching(/^sha512-/),
  });
  expect(locked?.hasInstallScript).toBeUndefined();
  const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');
  // The digest of Node's hundred megabytes takes half a second.
  if (realpathSync(process.execPath) !== program) expect(digest(process.execPath)).toBe(digest(program));
});

test('the lock file names the Node of every platform', () => {
  const nodes = Object.keys(lock.packages).filter((name) => /^node_modules\/node-.*-(x64|arm64)$/.test(name));
  expect(nodes.map((name) => name.replace(/^node_modules\/node-(bin-)?/, '')).sort()).toEqual([
    'darwin-arm64',
    'darwin-x64',
    'linux-arm64',
    'linux-x64',
    'win-x64',
  ]);
  expect(problemsOfLock(lock)).toEqual([]);
});

test('the check names each package that the lock file leaves to the registry', () => {
  const { '': root = {}, ...packages } = lock.packages;
  const bad: Lock = {
    packages: {
      '': { ...root, optionalDependencies: { missing: '1.0.0' } },
      ...packages,
      'node_modules/node': { integrity: 'sha512-', hasInstallScript: true, bin: { node: 'bin/node' } },
      'node_modules/bare': {},
      'node_modules/addressed': { integrity: 'sha512-', resolved: 'https://registry.example/addressed.tgz' },
    },
  };
  expect(problemsOfLock(bad)).toEqual([
    expect.stringContaining('addressed is locked to one'),
    expect.stringContaining('node brings Node by an install script'),
    expect.stringContaining('bare is locked without its digest'),
    expect.stringContaining('missing is not locked'),
  ]);
});
