import { stat, writeFile } from 'node:fs/promises';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startSandboxProcess } from '../../cli/sandbox.ts';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { createDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { startService } from './support/service.ts';

const service = await forFile(startService());

/** Sends one request as any program of the machine may send it, with any headers. */
async function ask(method: string, path: string, headers: OutgoingHttpHeaders = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    headers: OutgoingHttpHeaders;
    text: string;
  }>();
  request(service.sandbox.url + path, { method, headers }, (answer) => {
    let text = '';
    answer.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
  })
    .on('error', reject)
    .end();
  return await promise;
}
const authorization = () => `Bearer ${service.sandbox.controlToken}`;
const reading = ['', '/status', '/organizations', '/endpoints', '/events', '/deliveries', '/faults'];
const changing = [
  '/changes',
  '/random',
  '/live',
  '/organizations',
  '/endpoints',
  '/clock',
  '/disturb',
  '/faults',
];

describe('control routes', () => {
  test('require the token, even over loopback', async () => {
    const before = await service.control('GET', '/sandbox/organizations');
    const routes = [
      ...reading.map((path) => ['GET', path] as const),
      ...changing.map((path) => ['POST', path] as const),
      ['DELETE', '/faults'] as const,
    ];
    for (const [method, path] of routes)
      for (const headers of [
        {},
        { authorization: 'Bearer ' },
        { authorization: `${authorization()}x` },
        { authorization: service.sandbox.controlToken },
        { authorization: `Bearer ${service.sandbox.apiKey}` },
        { 'x-api-key': service.sandbox.apiKey },
      ]) {
        const answer = await ask(method, `/sandbox${path}`, headers);
        expect([answer.status, answer.headers['www-authenticate']], `${method} ${path}`).toEqual([
          401,
          'Bearer',
        ]);
        expect(answer.text).not.toContain('uds_');
      }
    expect(await service.control('GET', '/sandbox/organizations')).toEqual(before);
  });

  test.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-origin' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://127.0.0.1', 'sec-fetch-site': 'none' },
  ])('a request of a web page is refused and changes nothing: %j', async (headers) => {
    const before = await service.control('GET', '/sandbox/organizations');
    for (const path of ['/sandbox/organizations', '/sandbox/clock']) {
      expect((await ask('POST', path, { ...headers, authorization: authorization() })).status).toBe(403);
      expect((await ask('POST', path, headers)).status).toBe(403);
    }
    expect(await service.control('GET', '/sandbox/organizations')).toEqual(before);
  });
});

describe('the Host header of a request', () => {
  beforeAll(() => service.enableWebhooks());

  const everywhere = [
    ['GET', '/sandbox/organizations'],
    ['GET', '/v2.2/company'],
    ['GET', '/v2/company'],
    ['POST', '/v2.1/external/configure_webhook'],
    ['GET', '/portal/unknown'],
    ['GET', '/nowhere'],
  ] as const;
  const allowed = () => ({ authorization: authorization(), 'x-api-key': service.sandbox.apiKey });

  test.each(['evil.example', '127.0.0.1.evil.example', 'localhost.evil.example'])(
    'is refused for a page whose name %s resolves to this machine, even with key and token',
    async (host) => {
      for (const [method, path] of everywhere) {
        const answer = await ask(method, path, { ...allowed(), host });
        expect([path, answer.status]).toEqual([path, 403]);
        expect(answer.text).toContain('not a name of the sandbox');
      }
    },
  );

  test.each([
    '127.0.0.1',
    'localhost',
    '[::1]:4000',
    '192.168.7.7:80',
    'host.docker.internal:4000',
    'sandbox.default.svc.cluster.local',
  ])('is accepted if it names the machine as %s', async (host) => {
    for (const path of ['/sandbox/status', '/v2.2/company']) {
      expect((await ask('GET', path, { ...allowed(), host })).status).toBe(200);
    }
  });

  test('is used in the portal link that its caller gets', async () => {
    const path = '/v2.2/external/configure_webhook';
    const { text } = await ask('POST', path, { ...allowed(), host: 'sandbox:8080' });
    expect(JSON.parse(text).url).toMatch(/^http:\/\/sandbox:8080\/portal\/[\w-]{32}$/);
  });
});

test('only the owner can read the files of a started sandbox, even if an older file was readable', async () => {
  const [database, folder] = await Promise.all([createDatabase('sandbox'), temporaryFolder()]);
  onTestFinished(async () => {
    await Promise.all([database.drop(), folder.remove()]);
  });
  const file = join(folder.path, 'sandbox.json');
  await writeFile(file, '{}', { mode: 0o644 });
  const said: string[] = [];
  const sandbox = await startSandboxProcess({
    databaseUrl: database.url,
    dataDir: folder.path,
    size: { companies: 1, documents: 1, intervalDays: 1 },
    onLine: (line) => said.push(line),
  });
  await sandbox.stop();
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test('each start has a new token, and warns if it listens beyond loopback', async () => {
  const database = await createDatabase('sandbox');
  onTestFinished(() => database.drop());
  const said: string[] = [];
  const sandbox = await startSandbox({
    databaseUrl: database.url,
    host: '0.0.0.0',
    companies: 1,
    documents: 1,
    intervalDays: 0,
    log: ({ message }) => said.push(message),
  });
  await sandbox.close();
  expect(sandbox.controlToken).toMatch(/^[\w-]{32}$/);
  expect(sandbox.controlToken).not.toBe(service.sandbox.controlToken);
  expect(said).toContainEqual(expect.stringContaining('listens on 0.0.0.0, without TLS'));
});
