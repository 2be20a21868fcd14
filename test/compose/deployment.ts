import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { freePort } from '../support/port.ts';

const checkout = resolve(import.meta.dirname, '../..');
/** An image and a project of their own, so that a deployment on the same machine stays as it is. */
export const project = 'metersync-test-compose';

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A copy of the compose file in a folder of its own, with a sandbox of the service in containers next to it. */
export interface Deployment {
  readonly folder: string;
  readonly receiverUrl: string;
  readonly consoleUrl: string;
  /** Runs docker compose. Only `attempt` returns if it fails. */
  compose(...args: string[]): Promise<string>;
  attempt(...args: string[]): Promise<Ran>;
  /** Runs the command in the running worker, as the guide says. */
  metersync(...args: string[]): Promise<string>;
  secretsScript(): Promise<string>;
  readSecret(path: string): Promise<string>;
  /** Replaces a file of secrets as an editor does: writes another file and gives it the name. */
  replaceSecret(path: string, text: string): Promise<void>;
  /** Id and times of every container. They change if a command starts one. */
  containers(): Promise<readonly string[]>;
  remove(): Promise<void>;
}

export async function makeDeployment(say: (line: string) => void): Promise<Deployment> {
  // In the checkout, because an engine in a virtual machine sees only folders of the user.
  const parent = join(checkout, '.metersync');
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, 'compose-'));
  for (const name of ['docker-compose.yml', 'docker', '.env.example'])
    await cp(join(checkout, name), join(folder, name), { recursive: true });
  const [receiverPort, consolePort] = [await freePort(), await freePort()];
  const settings = [
    'SERVICE_URL=http://service:9000/v2.2',
    // The sandbox has no TLS.
    'STRICT_TLS=off',
    `RECEIVER_PORT=${receiverPort}`,
    `CONSOLE_PORT=${consolePort}`,
    'RECEIVER_PUBLIC_URL=http://receiver:8080/webhooks',
  ];
  await writeFile(join(folder, '.env'), `${settings.join('\n')}\n`);
  // JSON is also YAML.
  await writeFile(join(folder, 'docker-compose.override.yml'), JSON.stringify(override(), null, 2));
  const run = (program: string, args: readonly string[]) => runProgram(program, args, folder, say);
  const attempt = (...args: string[]) =>
    run('docker', ['compose', '--project-name', project, '--profile', 'console', ...args]);
  const succeed = async (ran: Promise<Ran>): Promise<string> => {
    const { status, stdout, stderr } = await ran;
    if (status !== 0) throw new Error(`it ended with status ${status}:\n${stdout}${stderr}`);
    return stdout;
  };
  const compose = (...args: string[]) => succeed(attempt(...args));
  const secret = (path: string) => join(folder, 'secrets', path);
  return {
    folder,
    receiverUrl: `http://127.0.0.1:${receiverPort}`,
    consoleUrl: `http://127.0.0.1:${consolePort}`,
    compose,
    attempt,
    metersync: (...args) => compose('exec', '-T', 'worker', 'node', '/app/dist/cli/main.js', ...args),
    secretsScript: () => succeed(run('sh', ['docker/secrets.sh'])),
    readSecret: (path) => readFile(secret(path), 'utf8'),
    replaceSecret: async (path, text) => {
      await writeFile(secret(`${path}.new`), text, { mode: 0o644 });
      await rename(secret(`${path}.new`), secret(path));
    },
    containers: async () => {
      const ids = (await compose('ps', '--all', '--quiet')).trim().split('\n').filter(Boolean);
      const format = '{{.Name}} {{.Id}} {{.State.StartedAt}} {{.State.FinishedAt}}';
      return (await succeed(run('docker', ['inspect', '--format', format, ...ids])))
        .trim()
        .split('\n')
        .sort();
    },
    remove: async () => {
      await attempt('down', '--volumes', '--remove-orphans', '--timeout', '20');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Names the image of the test, which is built from the checkout, and adds the service with its own Postgres. */
function override(): object {
  const ours = { image: project, build: { context: checkout } };
  const anyPrivateNetwork = '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16';
  return {
    services: {
      migrate: ours,
      receiver: ours,
      worker: ours,
      console: ours,
      'console-port': { image: project },
      'service-postgres': {
        image: 'postgres:18.4-trixie',
        environment: { POSTGRES_PASSWORD: 'service' },
        networks: ['service'],
        volumes: ['service:/var/lib/postgresql'],
        healthcheck: {
          test: ['CMD', 'pg_isready', '--host=127.0.0.1', '--username=postgres'],
          interval: '1s',
          retries: 60,
        },
      },
      service: {
        ...ours,
        init: true,
        command: [
          ...['sandbox', '--host', '0.0.0.0', '--port', '9000', '--deliver-to', anyPrivateNetwork],
          ...['--companies', '3', '--documents', '40', '--interval-days', '3'],
        ],
        environment: { SANDBOX_DATABASE_URL: 'postgres://postgres:service@service-postgres/postgres' },
        networks: ['events', 'service'],
        ports: ['127.0.0.1::9000'],
        depends_on: { 'service-postgres': { condition: 'service_healthy' } },
        healthcheck: {
          test: ['CMD', 'test', '-s', '/var/lib/metersync/sandbox.json'],
          interval: '1s',
          retries: 120,
        },
      },
    },
    networks: { service: null },
    volumes: { service: null },
  };
}

async function runProgram(
  program: string,
  args: readonly string[],
  cwd: string,
  say: (line: string) => void,
): Promise<Ran> {
  say(`$ ${[program, ...args].join(' ')}`);
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  const [status] = await once(child, 'close');
  return { status: status as number | null, ...text };
}
