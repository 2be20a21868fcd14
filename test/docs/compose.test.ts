import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildProgram } from '../../cli/program.ts';
import { postgresMajor } from '../../embedded/postgres-data.ts';
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
}

describe('docker-compose.yml', () => {
  const compose = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, null>;
  };
  const services = Object.entries(compose.services);
  const ours = services.filter(([, service]) => service.build !== undefined);

  test('has Postgres, Temporal, the migration, a receiver and a worker', () => {
    expect(Object.keys(compose.services)).toEqual(['postgres', 'temporal', 'migrate', 'receiver', 'worker']);
    expect(ours.map(([name]) => name)).toEqual(['migrate', 'receiver', 'worker']);
  });

  test('ours run subcommands that exist', () => {
    const subcommands = buildProgram().commands.map((command) => command.name());
    for (const [, { command }] of ours) expect(subcommands).toContain(command?.[0]);
  });

  test('ours are given variables that are settings', () => {
    for (const [name, { environment = {} }] of ours) {
      const unknown = Object.keys(environment).filter(
        (variable) => !(variable in settings) && !variable.startsWith('TEMPORAL_'),
      );
      expect({ name, unknown }).toEqual({ name, unknown: [] });
    }
  });

  test('each has what it needs: the worker all, the receiver no warehouse, the migration nothing else', () => {
    const given = (name: string) => Object.keys(compose.services[name]?.environment ?? {});
    expect(given('migrate')).toEqual(['DATABASE_URL']);
    expect(given('receiver')).not.toContain('DATABASE_URL');
    expect(given('receiver')).toEqual(expect.arrayContaining(['TEMPORAL_ADDRESS', 'WEBHOOK_SECRETS']));
    expect(given('worker')).toEqual(
      expect.arrayContaining(['TEMPORAL_ADDRESS', 'DATABASE_URL', 'SERVICE_URL', 'SERVICE_API_KEY']),
    );
  });

  test('what the sandbox would stand in for has to be set', () => {
    const { receiver, worker } = compose.services;
    for (const value of [
      receiver?.environment?.WEBHOOK_SECRETS,
      worker?.environment?.SERVICE_URL,
      worker?.environment?.SERVICE_API_KEY,
    ])
      expect(value).toMatch(/^\$\{[A-Z_]+:\?/);
  });

  test('services wait for services, by what those can say', () => {
    for (const [, { depends_on = {} }] of services) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        const awaited = compose.services[name];
        expect(awaited).toBeDefined();
        if (condition === 'service_healthy') expect(awaited?.healthcheck).toBeDefined();
        else expect([name, condition]).toEqual(['migrate', 'service_completed_successfully']);
      }
    }
  });

  test('images of others are exact versions: those of the embedded stack', () => {
    const { postgres, temporal } = compose.services;
    expect(postgres?.image).toMatch(new RegExp(`^postgres:${postgresMajor}\\.\\d+-`));
    const [, version] = /const version = '([\d.]+)'/.exec(read('embedded/temporal-fetchers.ts')) ?? [];
    expect(temporal?.image).toBe(`temporalio/temporal:${version}`);
  });

  test('volumes are declared and hold what has to stay', () => {
    const mounted = services.flatMap(([, { volumes = [] }]) => volumes);
    expect(mounted.map((volume) => volume.split(':')[0])).toEqual(Object.keys(compose.volumes));
    const file = compose.services.temporal?.command?.find((part) => part.startsWith('--db-filename='));
    expect(file).toContain(`=${mounted[1]?.split(':')[1]}/`);
  });
});

describe('Dockerfile', () => {
  const dockerfile = read('Dockerfile');

  test('copies what is there and not ignored', () => {
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

  test('the build has every file that it needs', () => {
    const ignored = read('.dockerignore').split('\n').filter(Boolean);
    const { include } = JSON.parse(read('tsconfig.build.json')) as { include: string[] };
    for (const path of [...include, 'build.ts', 'tsconfig.json', 'tsconfig.build.json']) {
      expect(ignored).not.toContain(path);
    }
  });

  test('runs what the package runs, on the Node of the package, as nobody special', () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
    expect(new Set(bases)).toEqual(new Set([`node:${manifest.dependencies.node}-trixie-slim`]));
    expect(dockerfile).toContain(`ENTRYPOINT ["node", "/app/${manifest.bin.metersync}"]`);
    expect(dockerfile.trimEnd().split('\n').indexOf('USER node')).toBeGreaterThan(
      dockerfile.split('\n').findLastIndex((line) => line.startsWith('COPY')),
    );
  });
});
