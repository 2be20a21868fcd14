import { createHook } from 'node:async_hooks';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { httpLimits } from '../../receiver/http-limits.ts';
import { listening } from './listening.ts';
import { exchange, RawConnection, requestBytes } from './raw-http.ts';
import { golden, signedHeaders } from './signing.ts';

const quick = { headersTimeoutMs: 200, requestTimeoutMs: 200, connectionsCheckMs: 20 };

/** Writes one byte every `everyMs` until the other side ends the socket; returns how many were written. */
async function trickle(connection: RawConnection, bytes: Buffer, everyMs: number): Promise<number> {
  let at = 0;
  const timer = setInterval(() => connection.write(bytes.subarray(at, ++at)), everyMs);
  await connection.closed;
  clearInterval(timer);
  return at;
}

/** Counts compressions and decompressions from now on: each takes a handle of zlib, in any encoding. */
function countInflating(): () => number {
  let handles = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'ZLIB') handles += 1;
    },
  }).enable();
  onTestFinished(() => void hook.disable());
  return () => handles;
}

describe('hostile HTTP', () => {
  const body = Buffer.alloc(10_000, 'x');
  const head = requestBytes({ headers: [...signedHeaders({ body }), ['content-length', '10000']] });
  const longHead = requestBytes({ headers: [...signedHeaders(), ['x-slow', 'x'.repeat(1_000)]] });
  const slowly: [what: string, atOnce: Buffer, slowly: Buffer][] = [
    ['headers', longHead.subarray(0, 10), longHead.subarray(10)],
    ['a body', head, body],
  ];
  const openSlow = async (port: number, count: number, atOnce: Buffer) => {
    const slow = await Promise.all(Array.from({ length: count }, () => RawConnection.open(port)));
    for (const connection of slow) connection.write(atOnce);
    return slow;
  };

  test.each(slowly)('%s that arrives slowly gets its socket closed in time', async (_what, atOnce, rest) => {
    const { port, receiver, starts } = await listening({ limits: quick });
    const slow = await openSlow(port, 50, atOnce);
    const taken = await Promise.all(slow.map((connection) => trickle(connection, rest, 10)));
    for (const bytes of taken) expect(bytes).toBeLessThan(rest.length);
    expect(receiver.counters['too-slow']).toBe(50);
    expect(starts).toHaveLength(0);
  });

  const blankLines = Buffer.from('\r\n'.repeat(32 * 1024));

  test.each([
    ['a first request', []],
    ['a request after others', [requestBytes({ method: 'GET', path: '/healthz' })]],
  ])('a socket that sends nothing but blank lines before %s is ended', async (_when, before) => {
    const { port, receiver } = await listening();
    const connection = await RawConnection.open(port);
    for (const request of before) {
      connection.write(request);
      expect((await connection.answer()).status).toBe(200);
    }
    connection.write(blankLines);
    connection.write(blankLines);
    expect(await connection.answer()).toMatchObject({ status: 431, headers: { connection: 'close' } });
    await connection.closed;
    expect(receiver.counters['headers-too-large']).toBe(1);
  });

  test('a socket that brings many requests, each with a body and a blank line, stays open', async () => {
    const { port, receiver } = await listening({ limits: { beforeHeadersBytesMax: 1_024 } });
    const connection = await RawConnection.open(port);
    const body = JSON.stringify({ note: 'x'.repeat(20_000) });
    for (let n = 0; n < 100; n += 1) {
      connection.write('\r\n');
      connection.write(requestBytes({ headers: signedHeaders({ id: `msg_${n}`, body }), body }));
      expect((await connection.answer()).status).toBe(204);
    }
    connection.end();
    expect(receiver.counters).toMatchObject({ durable: 100, 'headers-too-large': 0 });
  });

  test('sockets are closed above the limit, the oldest first, to make room for deliveries and newer sockets', async () => {
    const connectionsMax = 56;
    const strangersMax = (connectionsMax * 3) / 4;
    const { port, deliver, receiver } = await listening({ limits: { connectionsMax } });
    const genuine = await RawConnection.open(port);
    genuine.write(requestBytes({ headers: signedHeaders({ id: 'msg_known' }), body: golden.body }));
    expect((await genuine.answer()).status).toBe(204);
    const strangers: RawConnection[] = [];
    for (let n = 0; n < 200; n += 1) {
      const stranger = await RawConnection.open(port);
      // Some trickle headers, some a body, and some are idle after an answer.
      stranger.write([longHead.subarray(0, 10 + n), head, requestBytes({ method: 'GET' })][n % 3] as Buffer);
      strangers.push(stranger);
      if (n % 20 === 0) expect((await deliver({ id: `msg_${n}` })).status).toBe(204);
    }
    expect(receiver.counters.busy).toBeGreaterThanOrEqual(200 - strangersMax);
    expect(await strangers[0]?.answer()).toMatchObject({ status: 503, headers: { connection: 'close' } });
    const stay = strangers.map(({ socket }) => !socket.destroyed);
    expect(stay.slice(0, 100).some(Boolean)).toBe(false);
    expect(stay.slice(-20).every(Boolean)).toBe(true);
    const open = await new Promise<number>((resolve) => {
      receiver.server.getConnections((_error, count) => resolve(count));
    });
    expect(open).toBeLessThanOrEqual(strangersMax);
    // A socket that brought a delivery stays, though it is the oldest of all.
    genuine.write(requestBytes({ headers: signedHeaders({ id: 'msg_again' }), body: golden.body }));
    expect((await genuine.answer()).status).toBe(204);
    for (const connection of [genuine, ...strangers]) connection.end();
  });

  test('sockets whose deliveries wait are kept, and more are accepted up to the limit', async () => {
    const limits = { connectionsMax: 8 };
    const held = Promise.withResolvers<void>();
    const { port, commit } = await listening({ limits, start: () => held.promise });
    const waiting: RawConnection[] = [];
    while (waiting.length < limits.connectionsMax) {
      const connection = await RawConnection.open(port);
      const headers = signedHeaders({ id: `msg_${waiting.length}` });
      connection.write(requestBytes({ headers, body: golden.body }));
      waiting.push(connection);
      await expect.poll(() => commit.waiting.events).toBe(waiting.length);
    }
    const tooMany = await RawConnection.open(port);
    await tooMany.closed;
    held.resolve();
    for (const connection of waiting) expect((await connection.answer()).status).toBe(204);
    for (const connection of waiting) connection.end();
  });

  // A gibibyte, which is 1 MB when compressed once and 2 kB when compressed twice.
  const packed = Buffer.concat(Array(64).fill(gzipSync(Buffer.alloc(16 * 1024 * 1024), { level: 9 })));
  test.each([
    ['gzip', gzipSync(golden.body)],
    ['br', brotliCompressSync(golden.body)],
    ['deflate', deflateSync(golden.body)],
    ['gzip', packed],
    ['gzip, gzip', gzipSync(packed)],
    ['identity', Buffer.from(golden.body)],
  ])('a body encoded as %s is answered with 415 and not decompressed', async (encoding, body) => {
    const { port, receiver } = await listening();
    const headers = [...signedHeaders({ body }), ['Content-Encoding', encoding]] as const;
    const inflating = countInflating();
    const before = process.memoryUsage().rss;
    expect((await exchange(port, { headers, body })).status).toBe(415);
    expect(process.memoryUsage().rss - before).toBeLessThan(10 * 1024 * 1024);
    expect(inflating()).toBe(0);
    expect(receiver.counters.encoded).toBe(1);
  });

  const pipelined: [target: string, header: string, ready: () => boolean | Promise<boolean>][] = [
    ['/readyz', 'X: y', () => new Promise(() => {})],
    ['/', 'X: y', () => true],
    ['/ HTTP/1.1\r\nX: y\r\n\r\nGET /', 'X: y', () => true],
    ['/', 'Expect: more', () => true],
  ];
  test.each(pipelined)(
    'requests to %s with %s that do not wait for answers get their socket closed before most are sent',
    async (target, header, ready) => {
      const { port, receiver } = await listening({ ready });
      let made = 0;
      receiver.server.on('request', () => (made += 1));
      const connection = await RawConnection.open(port);
      connection.write(`GET ${target} HTTP/1.1\r\nHost:\r\n${header}\r\n\r\n`.repeat(1_500));
      await connection.closed;
      expect(made).toBe(httpLimits.unansweredPerSocketMax);
      expect(receiver.counters.busy).toBe(1);
    },
  );

  test('a request after the last allowed request of a socket closes the socket', async () => {
    const { port, receiver } = await listening({ limits: { requestsPerSocketMax: 2 } });
    let dropped = 0;
    receiver.server.on('dropRequest', () => (dropped += 1));
    const connection = await RawConnection.open(port);
    connection.write(Buffer.concat(Array.from({ length: 9 }, () => requestBytes({ method: 'GET' }))));
    await connection.closed;
    expect(dropped).toBe(1);
    expect(receiver.counters.busy).toBe(1);
  });

  const begun = `POST /webhooks HTTP/1.1\r\nHost: receiver.test\r\n`;
  const signed = signedHeaders()
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const length = `Content-Length: ${golden.body.length}\r\n`;
  test.each([
    ['two Content-Length', `${begun}${signed}${length}Content-Length: 3\r\n\r\n${golden.body}`],
    ['Content-Length and chunked', `${begun}${signed}${length}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['a line that ends with only LF', `${begun.replace('\r\n', '\n')}${signed}${length}\r\n${golden.body}`],
    ['a space before the colon', `${begun}${signed}Content-Length : 20\r\n\r\n${golden.body}`],
    [
      'a folded header',
      `${begun}${signed}X-Folded: a\r\n b: c\r\n${length}\r\n${golden.body}`.replace(' b', '\tb'),
    ],
    ['no Host', `POST /webhooks HTTP/1.1\r\n${signed}${length}\r\n${golden.body}`],
    ['the same Host twice', `${begun}HOST: a\r\n${signed}${length}\r\n${golden.body}`],
    ['two Host where nothing is signed', 'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
    ['not HTTP at all', '\x16\x03\x01\x02\x00\x01\x00'],
  ])('%s is answered with 400, and the socket is closed', async (_what, bytes) => {
    const { port, starts } = await listening();
    const connection = await RawConnection.open(port);
    connection.write(Buffer.from(bytes, 'latin1'));
    const answer = await connection.answer();
    expect(answer.status).toBe(400);
    expect(answer.headers.connection).toBe('close');
    await connection.closed;
    expect(starts).toHaveLength(0);
  });

  test.each(['GET', 'PUT', 'HEAD', 'OPTIONS', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'QUERY'])(
    '%s is answered with 405 and Allow',
    async (method) => {
      const { port, starts } = await listening();
      const body = method === 'GET' || method === 'HEAD' ? '' : '{not JSON';
      for (const path of ['/webhooks', '/webhooks?a=b']) {
        const headers = [...signedHeaders(), ['content-type', 'application/json']] as const;
        const answer = await exchange(port, { method, path, headers, body });
        expect(answer).toMatchObject({ status: 405, headers: { allow: 'POST' } });
      }
      expect(starts).toHaveLength(0);
    },
  );
});
