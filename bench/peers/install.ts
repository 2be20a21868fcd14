import { execFile } from 'node:child_process';
import { access, mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** Versions of the measured peers, and of what each needs. */
export const versions = {
  dlt: '1.31.0',
  stripeSyncEngine: '0.48.5',
  stripe: '23.1.0',
} as const;

/** The folder of all peers, next to the embedded stack and apart from the project's own packages. */
export const peersDir = resolve(import.meta.dirname, '../../.metersync/peers');

const run = promisify(execFile);
/** Time-out of a first fetch over a slow line. */
const installWithinMs = 600_000;

export interface Installing {
  /** Folder of all peers. */
  readonly dir: string;
  /** Environment of an installer, which says where programs are and how packages are fetched. */
  readonly env: NodeJS.ProcessEnv;
  say(line: string): void;
}

/** Installs dlt in its own virtual environment, if needed. Returns its Python or throws an Error. */
export async function installDlt({ dir, env, say }: Installing): Promise<string> {
  const home = join(dir, `dlt-${versions.dlt}`);
  const python = join(home, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python');
  await once(home, async () => {
    await explain('the bench of peers needs python3', () => run('python3', ['--version'], { env }));
    say(`dlt ${versions.dlt} is fetched from PyPI`);
    await explain('the bench of peers needs venv and pip of python3', () =>
      run('python3', ['-m', 'venv', home], { env, timeout: installWithinMs }),
    );
    const wanted = `dlt[postgres]==${versions.dlt}`;
    await explain(`pip could not install ${wanted}`, () =>
      run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', wanted], {
        env,
        timeout: installWithinMs,
      }),
    );
  });
  return python;
}

/** Installs stripe-sync-engine in its own folder, if needed. Returns the folder or throws an Error. */
export async function installStripeSync({ dir, env, say }: Installing): Promise<string> {
  const home = join(dir, `stripe-sync-engine-${versions.stripeSyncEngine}`);
  await once(home, async () => {
    say(`stripe-sync-engine ${versions.stripeSyncEngine} is fetched from npm`);
    const dependencies = {
      '@supabase/stripe-sync-engine': versions.stripeSyncEngine,
      stripe: versions.stripe,
    };
    await writeFile(join(home, 'package.json'), JSON.stringify({ private: true, dependencies }));
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts'];
    await explain(`npm could not install ${Object.keys(dependencies).join(' and ')}`, () =>
      run('npm', args, { cwd: home, env, timeout: installWithinMs, shell: process.platform === 'win32' }),
    );
  });
  return home;
}

/** Fills a folder by `install`. An interrupted install starts again. */
async function once(home: string, install: () => Promise<void>): Promise<void> {
  const complete = join(home, '.complete');
  const isComplete = await access(complete).then(
    () => true,
    () => false,
  );
  if (isComplete) return;
  await rm(home, { recursive: true, force: true });
  await mkdir(home, { recursive: true });
  await install();
  await writeFile(complete, '');
}

/** Puts the purpose of the work before the error, which has the end of the program's output. */
async function explain(what: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { code, stderr, message } = error as { code?: unknown; stderr?: string; message: string };
    const said = code === 'ENOENT' ? 'there is no such program' : stderr?.trim().slice(-600) || message;
    throw new Error(`${what}: ${said}`, { cause: error });
  }
}
