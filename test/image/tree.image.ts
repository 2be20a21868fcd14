import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type SandboxProcess, startSandboxProcess } from '../../cli/sandbox-process.ts';
import manifest from '../../package.json' with { type: 'json' };
import { changedDocument, deliver, outcomeOf, receiving, secret } from '../build/signed-event.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { createNamespace } from '../support/namespace.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { buildTree, type ImageTree } from './tree.ts';

let image: ImageTree;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let warehouse: TestDatabase;
let serviceDatabase: TestDatabase;
let service: SandboxProcess;
let namespace: string;

beforeAll(async () => {
  image = await buildTree();
  [folder, warehouse, serviceDatabase, namespace] = await Promise.all([
    temporaryFolder(),
    createDatabase('image'),
    createDatabase('image_sandbox'),
    createNamespace(),
  ]);
  await chmod(folder.path, 0o711);
  service = await startSandboxProcess({
    databaseUrl: serviceDatabase.url,
    dataDir: folder.path,
    size: { companies: 1, documents: 3, intervalDays: 1 },
    onLine: () => {},
  });
});
afterAll(async () => {
  await service?.stop();
  await Promise.all([warehouse?.drop(), serviceDatabase?.drop(), folder?.remove(), image?.remove()]);
});

/** Writes secrets as compose mounts them; returns the variables that name the files. */
async function secretFiles(secrets: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const path = join(folder.path, Object.keys(secrets).join());
  await mkdir(path, { mode: 0o755 });
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(secrets)) {
    const file = join(path, name.toLowerCase());
    await writeFile(file, `${value}\n`, { mode: 0o644 });
    variables[`${name}_FILE`] = file;
  }
  return variables;
}

test('the user of the image cannot write the program or anything next to it', async () => {
  for (const target of [join(image.workdir, 'dist/cli/main.js'), join(image.workdir, 'new')]) {
    const { status, stderr } = await image.node(`fs.appendFileSync(${JSON.stringify(target)}, '')`).ended;
    expect({ target, status }).toEqual({ target, status: 1 });
    expect(stderr).toContain('EACCES');
  }
});

test('prints its version', async () => {
  expect(await image.start(['--version']).ended).toEqual({
    status: 0,
    stdout: `${manifest.version}\n`,
    stderr: '',
  });
});

test('migrates, and takes a signed event to a row through a healthy receiver and a healthy worker', async () => {
  const database = await secretFiles({ DATABASE_URL: warehouse.url });
  const migrated = await image.start(['migrate'], database).ended;
  expect(migrated, migrated.stderr).toMatchObject({ status: 0 });

  const temporal = { TEMPORAL_ADDRESS: inject('temporalAddress'), TEMPORAL_NAMESPACE: namespace };
  const ports = { receiver: await freePort(), worker: await freePort() };
  const receiver = image.start(['receiver'], {
    ...temporal,
    ...(await secretFiles({ WEBHOOK_SECRETS: secret })),
    RECEIVER_PORT: '0',
    METRICS_PORT: String(ports.receiver),
  });
  const worker = image.start(['worker'], {
    ...temporal,
    ...database,
    ...(await secretFiles({ SERVICE_API_KEY: service.apiKey })),
    SERVICE_URL: service.apiUrl,
    METRICS_PORT: String(ports.worker),
  });
  try {
    const url = (await receiving(receiver)).replace('0.0.0.0', '127.0.0.1');
    await until('the worker says that it runs', () => {
      if (worker.child.exitCode !== null) throw new Error(worker.said());
      return worker.said().includes('worker: running');
    });
    for (const port of Object.values(ports)) {
      const health = image.start(['healthcheck'], { METRICS_PORT: String(port) });
      expect(await health.ended, health.said()).toMatchObject({ status: 0 });
    }
    const event = await changedDocument(service);
    expect((await deliver(`${url}/webhooks`, event)).status).toBe(204);
    await until('the event is applied', async () => (await outcomeOf(warehouse.url, event.id)) === 'applied');

    for (const part of [receiver, worker]) {
      part.child.kill('SIGTERM');
      expect(await part.ended, part.said()).toMatchObject({ status: 0 });
    }
    const { status } = await image.start(['healthcheck'], { METRICS_PORT: String(ports.worker) }).ended;
    expect(status).toBe(1);
  } finally {
    for (const part of [receiver, worker]) part.child.kill('SIGKILL');
  }
});
