import { readdirSync } from 'node:fs';
import { appendFile, cp, mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bundleWorkflows, digestOfSources, workflowBundle } from '../../app/workflow-bundle.ts';
import { temporaryFolder } from '../support/folder.ts';

const checkout = resolve(import.meta.dirname, '../..');

async function folder(): Promise<string> {
  const { path, remove } = await temporaryFolder();
  onTestFinished(() => remove());
  return path;
}

/** The sources do not change between the tests: one bundle serves all. */
let bundled: ReturnType<typeof bundleWorkflows> | undefined;

/** Bundles into a folder, and counts how often the sources were bundled. */
async function bundle(into: string) {
  let times = 0;
  const made = await workflowBundle({ debug() {}, warn() {}, error() {} }, into, (log) => {
    times += 1;
    bundled ??= bundleWorkflows(log);
    return bundled;
  });
  return { code: 'code' in made ? made.code : undefined, times };
}

test('a checkout bundles its workflows once, and drops the bundle of earlier sources', async () => {
  const into = await folder();
  await writeFile(join(into, 'workflows-of-earlier.js'), '');
  const first = await bundle(into);
  expect(first.times).toBe(1);
  expect(first.code).toContain('applyEvents');
  expect(readdirSync(into)).toEqual([`workflows-${await digestOfSources(checkout)}.js`]);
  expect(await bundle(into)).toEqual({ code: first.code, times: 0 });
});

test('a worker starts with a new bundle where none can be kept', async () => {
  const file = join(await folder(), 'file');
  await writeFile(file, '');
  expect(await bundle(file)).toEqual({ code: expect.stringContaining('applyEvents'), times: 1 });
});

test('only a change of a workflow, the contract or a package makes another bundle', async () => {
  const copy = await folder();
  await mkdir(join(copy, 'app'));
  for (const path of ['workflows', 'contract', 'package-lock.json', 'app/workflow-bundle.ts']) {
    await cp(join(checkout, path), join(copy, path), { recursive: true });
  }
  const digests = [await digestOfSources(checkout)];
  expect(await digestOfSources(copy)).toBe(digests[0]);
  for (const path of [
    'workflows/activity-options.ts',
    'contract/names.ts',
    'package-lock.json',
    'workflows/more.ts',
  ]) {
    await appendFile(join(copy, path), '\n');
    digests.push(await digestOfSources(copy));
  }
  expect(new Set(digests).size).toBe(5);
  await writeFile(join(copy, 'app/worker.ts'), '');
  expect(await digestOfSources(copy)).toBe(digests.at(-1));
});
