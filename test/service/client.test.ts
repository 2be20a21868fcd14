import { randomBytes } from 'node:crypto';
import { once as eventOf } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { inspect } from 'node:util';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultEndpoints, type Endpoint } from '../../contract/endpoints.ts';
import { createServiceClient, requestPath } from '../../service/client.ts';
import { until } from '../support/poll.ts';
import { pageOf, someDocuments } from './listing.ts';
import type { Reply } from './scripted-server.ts';
import { apiKey, documents, rejection, setup } from './setup.ts';

const once = { budget: { attemptsMax: 1, waitMaxMs: 0 } };
const document = { endpoint: 'document', params: { id: 'd1' }, lane: 'live' } as const;

describe('a request', () => {
  test('carries the key, the user agent and the versioned path', async () => {
    const { server, client } = await setup((asked) => pageOf(someDocuments(1), asked), { version: '1.2.3' });
    await client.page(documents());
    expect(server.asked[0]).toMatchObject({
      path: '/v2.2/document/company/c1',
      headers: { 'x-api-key': apiKey, 'user-agent': 'metersync/1.2.3', accept: 'application/json' },
    });
    expect(server.asked[0]?.query.toString()).toBe('page=1');
  });

  test('is reported with its endpoint, result and bytes', async () => {
    const { client, ended } = await setup((asked) =>
      asked.path.endsWith('/ping') ? { body: '{"version":"v2.2"}' } : { status: 404, body: 'gone' },
    );
    await client.ping();
    await client.record(document);
    expect(ended).toEqual([
      { endpoint: 'ping', result: 'ok', bytes: 18, ms: expect.any(Number) },
      { endpoint: 'document', result: 'not_found', bytes: 4, ms: expect.any(Number) },
    ]);
  });
});

const silent = {
  apiKey,
  endpoints: defaultEndpoints,
  clock: { now: () => 0, sleep: () => new Promise<void>(() => undefined) },
  random: () => 0,
  log: { debug: () => undefined, warn: () => undefined },
};

describe('an answer', () => {
  const body = JSON.stringify({ documents: [{ id: 'ä–😀' }], hasNext: false });
  const packed = (bytes: Buffer, encoding: string): Exclude<Reply, string> => ({
    body: bytes,
    headers: { 'content-encoding': encoding },
  });

  test('may be compressed with gzip', async () => {
    const { server, client, ended } = await setup(() => packed(gzipSync(body), 'gzip'));
    expect((await client.page(documents())).body).toBe(body);
    expect(server.asked[0]?.headers['accept-encoding']).toBe('gzip');
    expect(ended.map(({ bytes }) => bytes)).toEqual([gzipSync(body).length]);
  });

  test('may begin with a byte order mark, which Postgres must not see', async () => {
    const { client } = await setup(() => ({ body: `\ufeff${body}` }));
    expect((await client.page(documents())).body).toBe(body);
  });

  const long = `{"documents": [], "x": "${'y'.repeat(100_000)}"}`;
  const unreadable: [string, Reply, string][] = [
    ['in an encoding that was not asked for', packed(brotliCompressSync(body), 'br'), 'encoding is br'],
    ['that is not the gzip it says', packed(Buffer.from(body), 'gzip'), 'incorrect header check'],
    ['whose gzip is cut short', packed(gzipSync(body).subarray(0, 30), 'gzip'), 'unexpected end of file'],
    ['that unpacks without end', packed(gzipSync(long), 'gzip'), 'longer than 50000 bytes'],
    ['that is too long', { body: long }, 'longer than 50000 bytes'],
    ['that is not UTF-8', { body: Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]) }, 'not UTF-8'],
    [
      'that is a web page',
      { body: '<html>maintenance</html>' },
      'expected JSON, got 24 characters of application/json: not JSON from character 0 on',
    ],
    ['that is JSON cut in the middle', { body: body.slice(0, 20) }, 'expected JSON'],
    ['that is empty', { body: '' }, 'an empty body'],
    ['without content', { status: 204, body: '' }, 'answered 204'],
  ];
  test.each(unreadable)('%s is SERVICE_ANSWER_UNREADABLE', async (_, reply, message) => {
    const { client } = await setup(() => reply, { ...once, maxBodyBytes: 50_000 });
    const error = await rejection(client.page(documents()));
    expect(error).toMatchObject({ code: 'SERVICE_ANSWER_UNREADABLE' });
    expect(`${error}`).toContain(message);
  });

  const unreachable: [string, Reply][] = [
    ['cut in the middle of its body', { cut: '{"documents": [' }],
    ['that never comes', 'hang up'],
  ];
  test.each(unreachable)('%s is SERVICE_UNREACHABLE', async (_, reply) => {
    const { client } = await setup(() => reply, once);
    expect(await rejection(client.page(documents()))).toMatchObject({ code: 'SERVICE_UNREACHABLE' });
  });

  test('that refuses is quoted, with the request and its status', async () => {
    const { client } = await setup(() => ({ status: 422, json: { detail: 'no such page' } }));
    const error = await rejection(client.page(documents(2)));
    expect(error).toMatchObject({ code: 'SERVICE_REQUEST_REFUSED', status: 422 });
    expect(`${error}`).toContain('GET /document/company/c1?page=2: answered 422');
    expect(`${error}`).toContain('no such page');
  });

  test.each<[string, Exclude<Reply, string>]>([
    ['cut off by the connection', { cut: '{"detail": ' }],
    ['packed and cut off', packed(gzipSync('x').subarray(0, 15), 'gzip')],
    ['too long to be read to its end', packed(gzipSync(randomBytes(200_000)), 'gzip')],
    ['in an unknown encoding', packed(Buffer.from('x'), 'br')],
  ])('that refuses with a body that is %s is known by its status', async (_, reply) => {
    const { client } = await setup(() => ({ ...reply, status: 401 }));
    expect(await rejection(client.page(documents()))).toMatchObject({
      code: 'SERVICE_KEY_REFUSED',
      status: 401,
    });
  });

  test('that redirects is refused, and its address gets no request', async () => {
    const { server, client } = await setup(({ path }) =>
      path.endsWith('/c1') ? { status: 302, body: '', headers: { location: '/elsewhere' } } : { json: [] },
    );
    const error = await rejection(client.page(documents()));
    expect(error).toMatchObject({ code: 'SERVICE_REQUEST_REFUSED', status: 302 });
    expect(server.asked.map(({ path }) => path)).toEqual(['/v2.2/document/company/c1']);
  });
});

describe('secrets', () => {
  const text =
    '{"documents": [{"id": "a", "login": {"Password": "hush"}, "amount": 1.10}], "hasNext": false}';
  const kept = '{"documents": [{"id": "a", "login": {}, "amount": 1.10}], "hasNext": false}';

  test('are in no page and no record, neither in the text nor in the values', async () => {
    const { client } = await setup(({ path }) => ({
      body: path.endsWith('/d1') ? text.replace('documents', 'x') : text,
    }));
    const page = await client.page(documents());
    expect(page.body).toBe(kept);
    expect(page.items).toEqual([{ id: 'a', login: {}, amount: 1.1 }]);
    expect(await client.record(document)).toMatchObject({ body: kept.replace('documents', 'x') });
  });

  test('are not in the quote of a refusal', async () => {
    const { client } = await setup(
      () => ({ status: 422, json: { detail: 'no', accessToken: 'hush' } }),
      once,
    );
    const error = await rejection(client.page(documents()));
    expect(`${error}`).toContain('answered 422 with "{"detail":"no"}"');
  });
});

describe('a record', () => {
  test('has its text as received, and its parsed value', async () => {
    const { client } = await setup(() => ({ body: '{"id": "d1", "amount": 1.10}' }));
    expect(await client.record(document)).toEqual({
      found: true,
      body: '{"id": "d1", "amount": 1.10}',
      value: { id: 'd1', amount: 1.1 },
    });
  });

  test.each([404, 410])('that is gone (%i) is not found', async (status) => {
    const { client } = await setup(() => ({ status, body: '' }));
    expect(await client.record(document)).toEqual({ found: false });
  });

  test('that is not an object is unreadable', async () => {
    const { client } = await setup(() => ({ json: [{ id: 'd1' }] }), once);
    expect(await rejection(client.record(document))).toMatchObject({ code: 'SERVICE_ANSWER_UNREADABLE' });
  });

  test('of an endpoint that the catalogue lacks is a failure, and not a deleted record', async () => {
    const endpoints = { ...defaultEndpoints, document: null };
    const { server, client } = await setup(() => ({ json: {} }), { endpoints });
    expect(client.has('document')).toBe(false);
    expect(client.has('documents')).toBe(true);
    expect(await rejection(client.record(document))).toMatchObject({
      code: 'SERVICE_NOT_FOUND',
      status: undefined,
    });
    expect(server.asked).toEqual([]);
  });
});

test('ping finds the version in any shape of answer', async () => {
  const answers = {
    '{"version": "v2.2"}': 'v2.2',
    '{"apiVersion": "v2.1"}': 'v2.1',
    '"v2"': 'v2',
    '{"ok": true}': null,
    '{"version": "of the key abcdef"}': null,
    pong: null,
    '': null,
  };
  const bodies = Object.keys(answers);
  const { client } = await setup(({ number }) => ({ body: bodies[number - 1] ?? '' }));
  for (const [body, version] of Object.entries(answers))
    expect(await client.ping(), body).toEqual({ version, date: expect.stringMatching(/GMT$/) });
});

describe('the API key', () => {
  const base64 = Buffer.from(apiKey).toString('base64');
  const echo: [string, Reply, string][] = [
    ['an error body', { status: 500, json: { received: { from: apiKey } } }, '[API key]'],
    ['a refusal', { status: 401, body: `key ${apiKey} is unknown` }, 'answered 401 with 35 characters'],
    ['a denial, encoded', { status: 403, body: `no ${base64}` }, 'answered 403 with 31 characters'],
  ];
  test.each(echo)('is in no error and no log if the service echoes it in %s', async (_, reply, said) => {
    const { client, logged } = await setup(() => reply);
    const error = await rejection(client.page(documents()));
    expect(inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toContain(apiKey);
    expect(inspect(logged, { depth: Number.POSITIVE_INFINITY })).not.toContain(apiKey);
    expect(`${error}`).toContain(said);
    expect(`${error}`).not.toContain(base64);
  });

  test.each<Reply>([
    { body: `<html>${apiKey}` },
    { json: { key: apiKey } },
    { body: 'x', headers: { 'content-encoding': apiKey, 'content-type': apiKey } },
    { status: 206, body: apiKey },
  ])('is in no error if a successful answer contains it: %j', async (reply) => {
    const { client, logged } = await setup(() => reply);
    const error = await rejection(client.page(documents()));
    expect(error).toMatchObject({ code: 'SERVICE_ANSWER_UNREADABLE' });
    expect(inspect([error, logged], { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toContain(
      apiKey,
    );
  });

  test('is in no error if a server that does not speak HTTP echoes it', async () => {
    const server = createServer((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\nx y\x01: ${apiKey}\r\n\r\n${apiKey}`),
    );
    server.listen(0, '127.0.0.1');
    await eventOf(server, 'listening');
    const client = createServiceClient({
      ...silent,
      ...once,
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2.2`,
    });
    const error = await rejection(client.page(documents()));
    await client.close();
    server.close();
    expect(error).toMatchObject({ code: 'SERVICE_ANSWER_UNREADABLE' });
    expect(inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toContain(apiKey);
  });

  test.each(['', 'two words', 'line\nbreak', 'schlüssel'])(
    'is refused without being quoted if it is %j',
    (key) => {
      const create = () => createServiceClient({ ...silent, apiKey: key, baseUrl: 'http://localhost/v2.2' });
      expect(create).toThrow('printable ASCII');
      if (key !== '') expect(create).not.toThrow(key);
    },
  );
});

test.each(['', 'localhost', 'ftp://service/v2', '/v2'])('the base address %j is refused', (baseUrl) => {
  expect(() => createServiceClient({ ...silent, baseUrl })).toThrow('http or https URL');
});

test('a client that is closed during a request fails it at once, without a retry', async () => {
  const { server, client } = await setup(() => 'silence');
  const page = rejection(client.page(documents()));
  await until('the number of requests at the server is 1', () => server.inFlight === 1);
  await client.close();
  expect(await page).toMatchObject({ code: 'UND_ERR_DESTROYED' });
  expect(server.asked).toHaveLength(1);
});

const endpoint = (name: keyof typeof defaultEndpoints): Endpoint => {
  const entry = defaultEndpoints[name];
  if (entry === null) throw new Error(`no ${name}`);
  return entry;
};

describe('the path of a request', () => {
  test.each<
    [
      name: keyof typeof defaultEndpoints,
      params: Record<string, string>,
      page: number | undefined,
      path: string,
    ]
  >([
    ['documents', { companyId: 'c1' }, 3, '/document/company/c1?page=3'],
    ['document', { id: 'd1' }, undefined, '/document/d1'],
    ['intervals', { meterId: 'm' }, 1, '/interval/meter/m?page=1'],
    [
      'intervals',
      { meterId: 'm', start: '2025-01-01T00:00:00.5' },
      1,
      '/interval/meter/m?startDate=2025-01-01T00%3A00%3A00.5&page=1',
    ],
    ['document', { id: 'a\ud800' }, undefined, '/document/a%EF%BF%BD'],
  ])('of %s with %j and page %s is %s', (name, params, page, path) => {
    expect(requestPath({ endpoint: endpoint(name), params, ...(page && { page }) })).toBe(path);
  });

  test('keeps every value as one segment that decodes to the value', () => {
    const value = fc
      .string({ unit: 'grapheme', minLength: 1 })
      .filter((text) => text !== '.' && text !== '..');
    fc.assert(
      fc.property(value, (id) => {
        const url = new URL(
          `http://service${requestPath({ endpoint: endpoint('document'), params: { id } })}`,
        );
        const segments = url.pathname.split('/');
        expect(segments.slice(0, 2)).toEqual(['', 'document']);
        expect(segments).toHaveLength(3);
        expect(decodeURIComponent(segments[2] ?? '')).toBe(id);
        expect(url.search).toBe('');
      }),
    );
  });

  test.each([undefined, '', '.', '..'])('is refused if a placeholder contains %j', (id) => {
    const params = id === undefined ? {} : { id };
    expect(() =>
      requestPath({ endpoint: endpoint('document'), params: params as Record<string, string> }),
    ).toThrow(expect.objectContaining({ code: 'SERVICE_REQUEST_REFUSED' }));
  });
});
