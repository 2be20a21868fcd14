/**
 * `npm run build`: builds what `npx metersync` and the container run. dist/ gets one JavaScript file for each
 * TypeScript file, the SQL of both databases, and the workflows as a single script, which Temporal's isolate
 * loads.
 */
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundleWorkflows } from './app/temporal/workflow-bundle.ts';

const project = import.meta.dirname;
const dist = join(project, 'dist');

/** Folders that are copied unchanged, because the code reads them at run time: SQL, styles and a script. */
const plain = [
  'db/migrations',
  'analytics',
  'sandbox/migrations',
  'web/assets',
  'console/assets',
  'sandbox/portal/assets',
];

await build();

/** Builds next to dist/ and then replaces it, so that a failed build leaves the last build complete. */
async function build(): Promise<void> {
  mkdirSync(join(project, '.metersync'), { recursive: true });
  const fresh = mkdtempSync(join(project, '.metersync', 'build-'));
  try {
    await Promise.all([compile(fresh), bundle(fresh)]);
    for (const folder of plain) cpSync(join(project, folder), join(fresh, folder), { recursive: true });
    chmodSync(join(fresh, 'cli/main.js'), 0o755);
    // mkdtemp creates a folder that only its owner can read, but every user must be able to read a package or
    // an image.
    chmodSync(fresh, 0o755);
    rmSync(dist, { recursive: true, force: true });
    renameSync(fresh, dist);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** Removes the types. `npm run check` checks them, which takes five times as long. */
async function compile(into: string): Promise<void> {
  const tsc = join(project, 'node_modules/.bin/tsc');
  try {
    await promisify(execFile)(tsc, ['--project', join(project, 'tsconfig.build.json'), '--outDir', into]);
  } catch (error) {
    const { stdout } = error as { stdout?: string };
    throw new Error(stdout || String(error));
  }
}

/**
 * Bundles the workflows from the sources. A worker of a checkout does the same, so that both run the same
 * script.
 */
async function bundle(into: string): Promise<void> {
  const { code } = await bundleWorkflows({
    debug: () => {},
    warn: (message: string) => console.warn(message),
    error: (message: string) => console.error(message),
  });
  writeFileSync(join(into, 'workflow-bundle.js'), withoutMachinePaths(code));
}

/**
 * Makes the paths in the bundle's source map relative to the project, so that the bundle is the same
 * anywhere.
 */
function withoutMachinePaths(code: string): string {
  return code.replace(/(?<=sourceMappingURL=data:[^,]*,)[A-Za-z0-9+/=]+/, (encoded) => {
    const map = Buffer.from(encoded, 'base64').toString('utf8').replaceAll(`${project}/`, '');
    return Buffer.from(map).toString('base64');
  });
}
