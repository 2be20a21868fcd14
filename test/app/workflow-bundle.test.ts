import { readdirSync } from 'node:fs';
import { appendFile, cp, mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { expect, onTestFinished, test } from 'vitest';
import { digestOfSources, workflowBundle } from '../../app/temporal/workflow-bundle.ts';
import { temporaryFolder } from '../support/folder.ts';

const checkout = resolve(import.meta.dirname, '../..');

async function folder(): Promise<string> {
  const { path, remove } = await temporaryFolder();
  onTestFinished(() => remove());
  return path;
}

const silent = { debug() {}, warn() {}, error() {} };

/** Returns the bundle of a folder, from this checkout's store, and how often it was bundled. */
async function bundle(into: string) {
  let times = 0;
  const made = await workflowBundle(silent, into, async () => {
    times += 1;
    return withCode(await workflowBundle(silent));
  });
  return { code: withCode(made).code, times };
}

function withCode(made: WorkflowBundleOption): { code: string } {
  if (!('code' in made)) throw new Error(`a checkout has a built bundle: ${made.codePath}`);
  return made;
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

test('a worker starts with a new bundle if it cannot be kept', async () => {
  const file = join(await folder(), 'file');
  await writeFile(file, '');
  expect(await bundle(file)).toEqual({ code: expect.stringContaining('applyEvents'), times: 1 });
});

test('only a change of a workflow, the contract or a package leads to another bundle', async () => {
  const copy = await folder();
  await mkdir(join(copy, 'app'));
  for (const path of ['workflows', 'contract', 'package-lock.json', 'app/temporal/workflow-bundle.ts']) {
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
  await writeFile(join(copy, 'app/worker-part.ts'), '');
  expect(await digestOfSources(copy)).toBe(digests.at(-1));
});
