import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Finds a program, or unpacks its Debian package below .metersync, where that can be fetched.
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
    await run('apt-get', ['--quiet=2', 'download', of], { cwd: fresh }).catch(async () => {
      await run('apt-get', ['--quiet=2', 'update']);
      await run('apt-get', ['--quiet=2', 'download', of], { cwd: fresh });
    });
    await run('sh', ['-c', 'dpkg -x ./*.deb .'], { cwd: fresh });
    await rename(join(fresh, 'usr'), join(folder, 'usr'));
    return unpacked;
  } catch (error) {
    throw new Error(`${name} is needed: apt-get install ${of} (Debian)`, { cause: error });
  }
}

export const prometheus = () => debianProgram('prometheus', 'prometheus');
export const promtool = () => debianProgram('promtool', 'prometheus');
export const pgbouncer = () => debianProgram('pgbouncer', 'pgbouncer', 'sbin');
export const amtool = () => debianProgram('amtool', 'prometheus-alertmanager');

/**
 * Finds Alertmanager, and the folder to run it in. Debian's build reads its templates below /usr/share. A copy
 * of the unpacked one reads them from the folder instead: the path in it has the same length.
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
