import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

export const checkout = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Makes the environment of a user's program, without the developer's own settings. */
const environment = (env: Readonly<Record<string, string>>): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  ...env,
});

/** The package as npm would publish it, built and unpacked in a folder outside the checkout. */
export interface UnpackedPackage {
  /** Folder of its package.json. */
  readonly path: string;
  /** The file that `bin` of its package.json names. */
  readonly command: string;
  remove(): Promise<void>;
}

/** Builds, packs and unpacks, with the dependencies of the checkout: installing again proves nothing. */
export async function unpackPackage(): Promise<UnpackedPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'metersync-package-'));
  // npm runs the build before it packs.
  await run('npm', ['pack', '--pack-destination', folder], { cwd: checkout, env: environment({}) });
  const [tarball] = await readdir(folder);
  await run('tar', ['-xzf', join(folder, tarball ?? ''), '-C', folder]);
  const path = join(folder, 'package');
  await symlink(join(checkout, 'node_modules'), join(path, 'node_modules'));
  const { default: manifest } = await import(join(path, 'package.json'), { with: { type: 'json' } });
  return {
    path,
    command: join(path, manifest.bin.metersync),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A started program: its output so far, and how it ended. */
export interface Program {
  readonly child: ChildProcess;
  said(): string;
  readonly ended: Promise<Ended>;
}

/** Starts a program, which ends with the test. */
export function startProgram(
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: Readonly<Record<string, string>> },
): Program {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: environment(options.env ?? {}),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  }
  return {
    child,
    said: () => `${text.stdout}${text.stderr}`,
    ended: once(child, 'close').then(([status]) => ({ status, ...text })),
  };
}
