import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { listening } from './listening.ts';
import { exchange, RawConnection, requestBytes } from './raw-http.ts';
import { golden, signedHeaders } from './signing.ts';

const quick = { headersTimeoutMs: 200, requestTimeoutMs: 200, connectionsCheckMs: 20 };

/** Writes one byte every few milliseconds until the other side has had enough. */
async function trickle(connection: RawConnection, bytes: Buffer): Promise<void> {
  let at = 0;
  const timer = setInterval(() => connection.write(bytes.subarray(at, ++at)), 10);
  await connection.closed;
  clearInterval(timer);
}

describe('hostile HTTP, by the row of the table of hostile inputs', () => {
  test('41: headers that trickle in end their sockets in time, and others are served meanwhile', async () => {
    const { port, deliver, receiver } = await listening({ limits: quick });
    const slow = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(port)));
    const head = requestBytes({ headers: [...signedHeaders(), ['x-slow', 'x'.repeat(1_000)]] });
    const ended = Promise.all(slow.map((connection) => trickle(connection, head)));
    for (let n = 0; n < 20; n += 1) expect((await deliver({ id: `msg_${n}` })).status).toBe(204);
    await ended;
    expect(receiver.counters['too-slow']).toBe(50);
  });

  test('42: a body that trickles in ends its socket in time', async () => {
    const { port, receiver, starts } = await listening({ limits: quick });
    const connection = await RawConnection.open(port);
    const body = Buffer.alloc(10_000, 'x');
    const bytes = requestBytes({ headers: signedHeaders({ body }), body });
    const head = bytes.indexOf('\r\n\r\n') + 4;
    connection.write(bytes.subarray(0, head));
    await trickle(connection, bytes.subarray(head));
    expect(receiver.counters['too-slow']).toBe(1);
    expect(starts).toHaveLength(0);
  });

  test('43: idle sockets make room for deliveries, and there are never more than the bound', async () => {
    const { port, deliver, receiver } = await listening({
      limits: { connectionsMax: 60, connectionsBeforeIdleClose: 20, idleCloseIntervalMs: 1 },
    });
    const idle: RawConnection[] = [];
    for (let n = 0; n < 200; n += 1) {
      const connection = await RawConnection.open(port);
      connection.write(requestBytes({ method: 'GET', path: '/healthz' }));
      expect((await connection.answer()).status).toBe(200);
      idle.push(connection);
      const open = await new Promise<number>((resolve) => {
        receiver.server.getConnections((_error, count) => resolve(count));
      });
      expect(open).toBeLessThanOrEqual(60);
    }
    expect((await deliver()).status).toBe(204);
    for (const connection of idle) connection.end();
  });

  test('43: sockets that never say anything are closed in time', async () => {
    const { port, deliver } = await listening({ limits: { ...quick, connectionsMax: 10 } });
    const silent = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(port)));
    await Promise.all(silent.map(({ closed }) => closed));
    expect((await deliver()).status).toBe(204);
  });

  const bomb = gzipSync(Buffer.alloc(128 * 1024 * 1024), { level: 1 });
  test.each([
    ['gzip', gzipSync(golden.body)],
    ['br', brotliCompressSync(golden.body)],
    ['deflate', deflateSync(golden.body)],
    ['gzip', bomb],
    ['identity', Buffer.from(golden.body)],
  ])('44: a body encoded as %s is answered 415 and not inflated', async (encoding, body) => {
    const { port, receiver } = await listening();
    const headers = [...signedHeaders({ body }), ['Content-Encoding', encoding]] as const;
    const before = process.memoryUsage().rss;
    expect((await exchange(port, { headers, body })).status).toBe(415);
    expect(process.memoryUsage().rss - before).toBeLessThan(10 * 1024 * 1024);
    expect(receiver.counters.encoded).toBe(1);
  });

  const head = `POST /webhooks HTTP/1.1\r\nHost: receiver.test\r\n`;
  const signed = signedHeaders()
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const length = `Content-Length: ${golden.body.length}\r\n`;
  test.each([
    ['two Content-Length', `${head}${signed}${length}Content-Length: 3\r\n\r\n${golden.body}`],
    ['Content-Length and chunked', `${head}${signed}${length}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['a line that ends with LF alone', `${head.replace('\r\n', '\n')}${signed}${length}\r\n${golden.body}`],
    ['a space before the colon', `${head}${signed}Content-Length : 20\r\n\r\n${golden.body}`],
    [
      'a folded header',
      `${head}${signed}X-Folded: a\r\n b: c\r\n${length}\r\n${golden.body}`.replace(' b', '\tb'),
    ],
    ['a chunk size that is no number', `${head}${signed}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
    ['no Host', `POST /webhooks HTTP/1.1\r\n${signed}${length}\r\n${golden.body}`],
    ['not HTTP at all', '\x16\x03\x01\x02\x00\x01\x00'],
  ])('45: %s is answered 400 and ends the socket', async (_what, bytes) => {
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
    '47: %s is answered 405 with Allow',
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
