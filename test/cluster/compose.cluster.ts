import { execFile } from 'node:child_process';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { childEnvironment } from '../../embedded/process.ts';
import { accepts, findTemporal } from '../../embedded/temporal.ts';
import { fault, say } from '../faults/fault.ts';
import { createPart } from '../faults/part.ts';
import type { RunningTemporal } from '../faults/rig.ts';
import { launchServer } from '../faults/server-process.ts';
import { administer, withPostgres } from '../postgres/warehouse.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { temporalPrograms } from './programs.ts';

const checkout = resolve(import.meta.dirname, '../..');

fault<RunningTemporal>({
  name: 'T8',
  title: 'the server as docker-compose.yml starts it',
  eachSeed: true,
  alarms: { may: ['ChangesMissed', 'RunUnwell'] },
  around: (work) =>
    withPostgres({}, async ({ users, port }) => {
      const folder = await temporaryFolder();
      const superuser = users.superuserUrl('postgres');
      await administer(superuser, ['create database warehouse']);
      const run = await prepareJobs(folder.path, superuser, port);
      try {
        // Each start of the compose file runs all jobs. The second time they must change nothing.
        for (let start = 0; start < 2; start++) {
          await run('roles');
          await run('temporal-schema');
        }
        const temporal = await startServer(folder.path, port);
        try {
          for (let start = 0; start < 2; start++)
            await run('temporal-namespace', { 'temporal:7233': temporal.address });
          return await work({ temporal }, temporal);
        } finally {
          await temporal.part.kill();
        }
      } finally {
        await folder.remove();
      }
    }),
  backfill: 'before',
  loadSeconds: 20,
  strike: async ({ rig, made: { part } }) => {
    rig.harm();
    await part.kill();
    await part.start();
  },
});

/**
 * Copies docker/ with separate secrets and programs. Returns a function that runs a job of the compose file, by
 * its entry point and with exactly the variables of its environment. Only places have other values: the image's
 * folders, and the hosts and ports of the servers.
 */
async function prepareJobs(folder: string, superuser: string, port: number) {
  await cp(join(checkout, 'docker'), join(folder, 'docker'), { recursive: true });
  await promisify(execFile)('sh', [join(folder, 'docker/secrets.sh')]);
  await writeFile(
    join(folder, 'secrets/postgres_password'),
    `${decodeURIComponent(new URL(superuser).password)}\n`,
  );
  const cli = await findTemporal({ log: say });
  await symlink(cli, join(folder, 'temporal'));
  await symlink((await temporalPrograms(say)).sqlTool, join(folder, 'temporal-sql-tool'));
  const { services } = await readCompose();
  return async (job: string, servers: Readonly<Record<string, string>> = {}) => {
    const places: Readonly<Record<string, string>> = {
      postgres: '127.0.0.1',
      'temporal-postgres': '127.0.0.1',
      '5432': String(port),
      '/run/secrets': join(folder, 'secrets'),
      ...servers,
    };
    const { entrypoint = [], environment = {} } = services[job] ?? {};
    const [program = '', ...args] = entrypoint.map((part) => part.replace(/^\/docker/, `${folder}/docker`));
    const env = Object.entries(environment).map(([name, value]) => [
      name,
      places[String(value)] ?? String(value),
    ]);
    await promisify(execFile)(program, args, {
      env: { PATH: `${folder}:${process.env.PATH}`, ...Object.fromEntries(env) },
    });
  };
}

interface Compose {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly entrypoint?: readonly string[];
        readonly environment?: Readonly<Record<string, string | number>>;
      }
    >
  >;
}

const readCompose = async () =>
  parse(await readFile(join(checkout, 'docker-compose.yml'), 'utf8'), { merge: true }) as Compose;

/** Starts the server with the arguments and the configuration of the compose file, on free ports. */
async function startServer(folder: string, postgresPort: number): Promise<RunningTemporal> {
  const [, ...args] = (await readCompose()).services.temporal?.entrypoint ?? [];
  const file = join(folder, 'temporal.yaml');
  let configuration = (await readFile(join(checkout, 'docker/temporal.yaml'), 'utf8'))
    .replaceAll('temporal-postgres:5432', `127.0.0.1:${postgresPort}`)
    .replaceAll('/run/secrets/', `${folder}/secrets/`);
  const ports = new Map<string, number>();
  for (const [port] of configuration.matchAll(/\b[67]\d{3}\b/g))
    if (!ports.has(port)) ports.set(port, await freePort());
  configuration = configuration.replace(/\b[67]\d{3}\b/g, (port) => String(ports.get(port)));
  await writeFile(file, configuration);
  const address = `127.0.0.1:${ports.get('7233')}`;
  const { server } = await temporalPrograms(say);
  const part = createPart('temporal', () =>
    launchServer(
      {
        command: server,
        args: args.map((arg) => arg.replace(/\/\S+$/, (path) => join(folder, basename(path)))),
        cwd: folder,
        env: childEnvironment(),
        logFile: join(folder, 'temporal.log'),
      },
      () => until('Temporal listens', () => accepts(address), { timeoutMs: 300_000, everyMs: 50 }),
    ),
  );
  await part.start();
  return { part, address, namespace: 'default' };
}
