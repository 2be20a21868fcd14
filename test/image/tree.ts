import { execFile } from 'node:child_process';
import { chmod, copyFile, cp, mkdir, readFile, stat } from 'node:fs/promises';
import { basename, delimiter, dirname, join, matchesGlob, relative } from 'node:path';
import { promisify } from 'node:util';
import { installerEnvironment } from '../../embedded/environment.ts';
import { checkout, type Program, startProgram } from '../build/package.ts';
import { temporaryFolder } from '../support/folder.ts';

const run = promisify(execFile);

/** The root of the image's last stage as a folder that nobody may write, and how to run its entry point. */
export interface ImageTree {
  /** Folder of the entry point's package. */
  readonly workdir: string;
  /** Starts the entry point, or Node with `program`, as another user without any right. */
  start(args: readonly string[], env?: Readonly<Record<string, string>>): Program;
  node(script: string): Program;
  remove(): Promise<void>;
}

/** Neither root nor the owner of a file: Debian's user nobody, which runs the program like the image's user. */
const nobody = '65534';
const withoutRights = [
  `--reuid=${nobody}`,
  `--regid=${nobody}`,
  '--clear-groups',
  '--no-new-privs',
  '--bounding-set=-all',
  '--inh-caps=-all',
];

/**
 * Does what the Dockerfile says, each stage in a folder instead of a container, on this machine's Node. Commands
 * of the last stage, which make a folder and an owner outside of it, are left out: the folder is made here.
 */
export async function buildTree(): Promise<ImageTree> {
  if (process.getuid?.() !== 0)
    throw new Error('only root may start programs as another user: run it as root');
  const folder = await temporaryFolder();
  await chmod(folder.path, 0o755);
  const stages = stagesOf(await readFile(join(checkout, 'Dockerfile'), 'utf8'));
  const rootOf = (stage: string) => join(folder.path, stage);
  const last = stages.at(-1);
  if (last === undefined) throw new Error('the Dockerfile has no stage');
  for (const stage of stages) {
    await mkdir(rootOf(stage.name));
    for (const step of stage.steps) await take(step, rootOf(stage.name), rootOf, stage === last);
  }
  const root = rootOf(last.name);
  const node = join(folder.path, 'node');
  await copyFile(process.execPath, node);
  await run('chmod', ['-R', 'a+rX,a-w', root]);
  // As tmpfs of docker-compose.yml: the only folders that the program may write.
  const [temporary, state] = [join(folder.path, 'tmp'), join(folder.path, 'state')];
  for (const own of [temporary, state]) {
    await mkdir(own, { mode: 0o700 });
    await run('chown', [`${nobody}:${nobody}`, own]);
  }
  const env = { ...last.env, METERSYNC_DIR: state, TMPDIR: temporary, HOME: '/nonexistent' };
  const start = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    startProgram('setpriv', [...withoutRights, node, ...args], { cwd: root, env: { ...env, ...more } });
  return {
    workdir: join(root, last.workdir),
    start: (args, more) => start([join(root, last.entry), ...args], more),
    node: (script) => start(['--eval', script]),
    remove: folder.remove,
  };
}

interface Step {
  readonly verb: string;
  readonly words: string;
  /** The folder of the image in which it is done. */
  readonly workdir: string;
}

interface Stage {
  readonly name: string;
  readonly steps: Step[];
  workdir: string;
  entry: string;
  readonly env: Record<string, string>;
}

/** Reads the instructions that metersync's Dockerfile uses; none of them has a second line. */
function stagesOf(dockerfile: string): Stage[] {
  const stages: Stage[] = [];
  for (const line of dockerfile.split('\n')) {
    const [, verb = '', words = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    const stage = stages.at(-1);
    if (verb === 'FROM') {
      const name = / AS (\w+)$/.exec(words)?.[1] ?? 'last';
      stages.push({ name, steps: [], workdir: '/', entry: '', env: {} });
    } else if (verb === 'WORKDIR' && stage !== undefined) stage.workdir = words;
    else if (verb === 'ENV' && stage !== undefined)
      Object.assign(stage.env, Object.fromEntries(words.split(' ').map((pair) => pair.split('='))));
    else if (verb === 'ENTRYPOINT' && stage !== undefined) stage.entry = JSON.parse(words)[1];
    else if (verb !== '') stage?.steps.push({ verb, words, workdir: stage.workdir });
  }
  return stages;
}

async function take(
  { verb, words, workdir }: Step,
  root: string,
  rootOf: (stage: string) => string,
  isLast: boolean,
): Promise<void> {
  const folder = join(root, workdir);
  await mkdir(folder, { recursive: true });
  if (verb === 'COPY') await copy(words.split(' '), folder, rootOf);
  if (verb !== 'RUN' || isLast) return;
  // The cache is the cache of this machine.
  const command = words.replace(' && npm cache clean --force', '');
  const env = installerEnvironment();
  env.PATH = `${dirname(process.execPath)}${delimiter}${env.PATH}`;
  await run('sh', ['-euc', command], { cwd: folder, env, maxBuffer: Number.POSITIVE_INFINITY });
}

async function copy(
  words: readonly string[],
  folder: string,
  rootOf: (stage: string) => string,
): Promise<void> {
  const from = words[0]?.startsWith('--from=') ? words[0].slice('--from='.length) : undefined;
  const [sources, target = ''] = [words.slice(from === undefined ? 0 : 1, -1), words.at(-1)];
  const base = from === undefined ? checkout : rootOf(from);
  const ignored = from === undefined ? await ignoredByDocker() : [];
  for (const source of sources) {
    const path = join(base, source);
    // Of a folder the contents are copied.
    const isFolder = (await stat(path)).isDirectory();
    await cp(path, join(folder, target, isFolder ? '' : basename(source)), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (file) => !ignored.some((pattern) => matchesGlob(relative(checkout, file), pattern)),
    });
  }
}

const ignoredByDocker = async (): Promise<string[]> =>
  (await readFile(join(checkout, '.dockerignore'), 'utf8')).split('\n').filter((line) => line !== '');
