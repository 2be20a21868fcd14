import { createHash, type Hash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleWorkflowCode, type WorkflowBundleOption } from '@temporalio/worker';
import type { Logger } from 'pino';

type BundleLog = Pick<Logger, 'debug' | 'warn' | 'error'>;

const root = join(import.meta.dirname, '../..');
/** The script that `npm run build` makes. */
const prebuilt = join(root, 'workflow-bundle.js');
/** Folder of stored scripts, next to the code: in a folder that others can write, they could be replaced. */
const compiled = join(root, '.metersync/compiled');

/** Returns the script of a built package; in a checkout, the script stored for the same sources, or a new one. */
export async function workflowBundle(
  log: BundleLog,
  folder = compiled,
  bundle = bundleWorkflows,
): Promise<WorkflowBundleOption> {
  if (existsSync(prebuilt)) return { codePath: prebuilt };
  const name = `workflows-${await digestOfSources(root)}.js`;
  const kept = await readFile(join(folder, name), 'utf8').catch(() => undefined);
  if (kept !== undefined) return { code: kept };
  const made = await bundle(log);
  await keep(folder, name, made.code).catch((error) => log.debug({ err: error }, 'the bundle is not kept'));
  return made;
}

/** Digests all that workflows may import: their room, contract/ and the packages of the lock file. */
export async function digestOfSources(checkout: string): Promise<string> {
  const sources = globSync('{workflows,contract}/**/*.ts', { cwd: checkout }).sort();
  const hash = createHash('sha256');
  for (const path of [...sources, 'app/temporal/workflow-bundle.ts', 'package-lock.json']) {
    addTo(hash, path, await readFile(join(checkout, path)));
  }
  return hash.digest('hex').slice(0, 32);
}

/** Adds the length too, so that no two lists of files digest the same text. */
function addTo(hash: Hash, path: string, content: Buffer): void {
  hash.update(`${path}\0${content.length}\0`).update(content);
}

/** Stores a script so that it appears complete to others, and removes scripts of earlier sources. */
async function keep(folder: string, name: string, code: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const unfinished = join(folder, `${name}.${process.pid}`);
  await writeFile(unfinished, code);
  await rename(unfinished, join(folder, name));
  const older = globSync('workflows-*.js', { cwd: folder }).filter((other) => other !== name);
  await Promise.all(older.map((other) => rm(join(folder, other), { force: true })));
}

/** Bundles the workflows into one script for Temporal's sandboxed isolate. */
export async function bundleWorkflows(log: BundleLog): Promise<{ code: string }> {
  const quiet = (message: string) => log.debug(message);
  return await bundleWorkflowCode({
    workflowsPath: join(root, 'workflows/registry.ts'),
    logger: {
      log: (_level, message) => quiet(message),
      trace: quiet,
      debug: quiet,
      info: quiet,
      warn: (message) => log.warn(message),
      error: (message) => log.error(message),
    },
  });
}
