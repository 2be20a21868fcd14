import { execFile } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Finds a program, or unpacks its Debian package below .metersync; for one in `sbin` also its libraries.
 * @throws Error that says what to install
 */
async function debianProgram(
  name: string,
  of: 'prometheus' | 'prometheus-alertmanager' | 'pgbouncer',
  kind: 'bin' | 'sbin' = 'bin',
): Promise<string> {
  const folder = resolve(import.meta.dirname, '../../.metersync', of);
  const unpacked = join(folder, 'usr', kind, name);
  const found = [`/usr/${kind}/${name}`, `/usr/local/bin/${name}`, unpacked].find((path) => existsSync(path));
  if (found !== undefined) return found;
  try {
    await mkdir(folder, { recursive: true });
    const fresh = await mkdtemp(join(folder, 'fetched-'));
    const download = async () => {
      const packages = kind === 'sbin' ? [of, ...(await librariesOf(of))] : [of];
      await run('apt-get', ['--quiet=2', 'download', ...packages], { cwd: fresh });
    };
    await download().catch(async () => {
      await run('apt-get', ['--quiet=2', 'update']);
      await download();
    });
    for (const file of globSync('*.deb', { cwd: fresh }))
      await run('dpkg', ['-x', file, '.'], { cwd: fresh });
    await rename(join(fresh, 'usr'), join(folder, 'usr')).catch((error: unknown) => {
      // Another process may have unpacked the package meanwhile.
      if (!existsSync(unpacked)) throw error;
    });
    await rm(fresh, { recursive: true });
    return unpacked;
  } catch (error) {
    throw new Error(`${name} is needed: apt-get install ${of} (Debian)`, { cause: error });
  }
}

/** Lists the libraries that a package names, except libc, which every machine has. */
async function librariesOf(name: string): Promise<string[]> {
  const { stdout } = await run('apt-cache', ['depends', name]);
  return [...stdout.matchAll(/ Depends: (lib(?!c6)\S+)/g)].map(([, library = '']) => library);
}

export const prometheus = () => debianProgram('prometheus', 'prometheus');
export const promtool = () => debianProgram('promtool', 'prometheus');
export const amtool = () => debianProgram('amtool', 'prometheus-alertmanager');

/** Finds PgBouncer, and the environment in which an unpacked PgBouncer finds its libraries. */
export async function pgbouncer(): Promise<{ command: string; env: Record<string, string> }> {
  const command = await debianProgram('pgbouncer', 'pgbouncer', 'sbin');
  if (!command.includes('.metersync')) return { command, env: {} };
  const [libraries = ''] = globSync(resolve(dirname(command), '../lib/*-linux-gnu*'));
  return { command, env: { LD_LIBRARY_PATH: libraries } };
}

/**
 * Finds Alertmanager, and the folder to run it in. Debian's build reads templates below /usr/share: in
 * a copy of an unpacked build, a relative path of the same length replaces that path.
 */
export async function alertmanager(): Promise<{ path: string; cwd: string }> {
  const found = await debianProgram('prometheus-alertmanager', 'prometheus-alertmanager');
  const cwd = resolve(dirname(found), '../..');
  if (!found.includes('.metersync')) return { path: found, cwd };
  const path = join(cwd, 'alertmanager');
  if (existsSync(path)) return { path, cwd };
  const program = (await readFile(found)).toString('latin1');
  const moved = program.replaceAll(
    '/usr/share/prometheus/alertmanager',
    'usr//share/prometheus/alertmanager',
  );
  await writeFile(`${path}.${process.pid}`, moved, { encoding: 'latin1', mode: 0o755 });
  await rename(`${path}.${process.pid}`, path);
  return { path, cwd };
}
