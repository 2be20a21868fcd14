import { cp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { temporaryFolder } from '../support/folder.ts';

const checkout = resolve(import.meta.dirname, '../..');
const left = new Set(['node_modules', 'test', 'bench', 'verify', 'docs', 'dist']);

/** Workflows that the new version changes. Each gets one more step at its start. */
const changed = {
  applyEvents: './events.ts',
  backfill: './backfill.ts',
} as const;

/**
 * Copies this checkout and gives its workflows one more step. With `patched`, workflows that are in flight
 * skip the step. With `unpatched`, which is the mistake, they run into it.
 */
export async function changedCheckout(
  how: 'patched' | 'unpatched',
): Promise<{ path: string; remove(): Promise<void> }> {
  const folder = await temporaryFolder();
  for (const name of await readdir(checkout)) {
    if (!left.has(name) && !name.startsWith('.'))
      await cp(join(checkout, name), join(folder.path, name), { recursive: true });
  }
  for (const name of ['hurried-worker.ts', 'pace.ts'])
    await cp(join(checkout, 'test/faults', name), join(folder.path, 'test/faults', name));
  await symlink(resolve(checkout, 'node_modules'), join(folder.path, 'node_modules'));
  const registry = join(folder.path, 'workflows/registry.ts');
  let text = await readFile(registry, 'utf8');
  for (const [name, file] of Object.entries(changed)) {
    const exported = new RegExp(`(?<=export \\{.*)\\b${name}\\b,? ?(?=.* from '${file}')`);
    if (!exported.test(text)) throw new Error(`workflows/registry.ts does not export ${name} from ${file}`);
    text = `${text.replace(exported, '')}${wrapped(name, file, how)}\n`;
  }
  await writeFile(registry, `import { patched, sleep } from '@temporalio/workflow';\n${text}`);
  return folder;
}

function wrapped(name: string, file: string, how: 'patched' | 'unpatched'): string {
  const when = how === 'patched' ? `patched('one more step')` : 'true';
  return `import { ${name} as ${name}Before } from '${file}';
export async function ${name}(...args: Parameters<typeof ${name}Before>) {
  if (${when}) await sleep(1);
  return await ${name}Before(...args);
}`;
}
