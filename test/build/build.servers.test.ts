import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { startSandboxProcess } from '../../cli/sandbox.ts';
import manifest from '../../package.json' with { type: 'json' };
import { createDatabase } from '../support/database.ts';
import { forFile } from '../support/for-file.ts';
import { createNamespace } from '../support/namespace.ts';
import { until } from '../support/poll.ts';
import { checkout, startProgram, unpackPackage } from './package.ts';
import { changedDocument, deliver, outcomeOf, receiving, secret } from './signed-event.ts';

const [built, warehouse, serviceDatabase, namespace] = await Promise.all([
  forFile(unpackPackage()),
  forFile(createDatabase('built')),
  forFile(createDatabase('built_sandbox')),
  createNamespace(),
]);
const service = await forFile(
  startSandboxProcess({
    databaseUrl: serviceDatabase.url,
    dataDir: built.path,
    size: { companies: 1, documents: 3, intervalDays: 1 },
    onLine: () => {},
  }),
);

const metersync = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  startProgram(built.command, args, { cwd: built.path, env });

describe('the package', () => {
  test('has an executable command that prints the help of every subcommand', async () => {
    expect(statSync(built.command).mode & 0o111).toBe(0o111);
    const help = await metersync(['--help']).ended;
    expect(help).toMatchObject({ status: 0, stderr: '' });
    const subcommands = [...help.stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name ?? '');
    expect(subcommands).toEqual(expect.arrayContaining(['start', 'demo', 'sandbox', 'migrate']));
    const helps = await Promise.all(
      ['start', 'demo', 'sandbox'].map((name) => metersync([name, '--help']).ended),
    );
    for (const { status, stdout } of helps) {
      expect(status).toBe(0);
      expect(stdout).toMatch(/^Usage: metersync /);
    }
  });

  test('contains no path of the machine that built it', () => {
    const bundle = readFileSync(join(built.path, 'dist/workflow-bundle.js'), 'utf8');
    const map = /sourceMappingURL=data:[^,]*,(\S+)/.exec(bundle)?.[1] ?? '';
    const { sources } = JSON.parse(Buffer.from(map, 'base64').toString('utf8'));
    expect(sources).toContain('workflows/events.ts');
    expect(bundle).not.toContain(checkout);
    expect(Buffer.from(map, 'base64').toString('utf8')).not.toContain(checkout);
  });

  test('runs in its own Node if an older Node starts it, and passes on arguments, status and SIGTERM', async () => {
    const older =
      'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.19.0"}})';
    const run = (args: string[], env = {}) =>
      startProgram(process.execPath, ['--import', older, built.command, ...args], { cwd: built.path, env });
    const [version, wrong] = await Promise.all([run(['--version']).ended, run(['backfill']).ended]);
    expect(version).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: '' });
    expect(wrong).toMatchObject({ status: 2, stdout: '' });
    expect(wrong.stderr).toContain('--external-id');

    const receiver = run(['receiver'], environment());
    try {
      const url = await receiving(receiver);
      receiver.child.kill('SIGTERM');
      expect(await receiver.ended, receiver.said()).toMatchObject({ status: 0 });
      await expect(fetch(`${url}/healthz`)).rejects.toThrow();
    } finally {
      receiver.child.kill('SIGKILL');
    }
  });

  test('migrates, brings a signed event to a row, and ends with status 0 within 10 s of SIGTERM', async () => {
    const env = environment();
    expect(await metersync(['migrate'], env).ended).toMatchObject({ status: 0 });

    const program = metersync(['start'], env);
    try {
      const url = await receiving(program);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);

      const event = await changedDocument(service);
      expect((await deliver(`${url}/webhooks`, event)).status).toBe(204);
      await until(
        'the event is applied',
        async () => (await outcomeOf(warehouse.url, event.id)) === 'applied',
      );

      // Draining for more than 9.5 s ends with status 1.
      program.child.kill('SIGTERM');
      expect(await program.ended, program.said()).toMatchObject({ status: 0 });
    } finally {
      program.child.kill('SIGKILL');
    }
  });
});

const environment = () => ({
  DATABASE_URL: warehouse.url,
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  TEMPORAL_NAMESPACE: namespace,
  SERVICE_URL: service.apiUrl,
  SERVICE_API_KEY: service.apiKey,
  WEBHOOK_SECRETS: secret,
  RECEIVER_PORT: '0',
});
