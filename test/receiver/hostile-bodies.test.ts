import { IncomingMessage } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { limits } from '../../contract/limits.ts';
import { httpLimits } from '../../receiver/http-limits.ts';
import { nested } from '../support/nested.ts';
import { listening } from './listening.ts';
import { exchange, RawConnection, requestBytes } from './raw-http.ts';
import { golden, macOf, signedHeaders } from './signing.ts';

/** Counts the pieces of bodies that Node's parser hands out from now on. */
function countPieces(): () => number {
  const push = vi.spyOn(IncomingMessage.prototype, 'push');
  onTestFinished(() => push.mockRestore());
  return () => push.mock.calls.filter(([piece]) => piece !== null).length;
}

const chunked = ['transfer-encoding', 'chunked'] as const;
const chunks = `${'1\r\nx\r\n'.repeat(4_000)}0\r\n\r\n`;

describe('hostile bodies', () => {
  test('pieces that split a character are joined to one body', async () => {
    const { port, bodies } = await listening();
    const body = Buffer.from('{"a":"🔌"}');
    const length = ['content-length', String(body.length)] as const;
    const connection = await RawConnection.open(port);
    connection.write(requestBytes({ headers: [...signedHeaders({ body }), length] }));
    for (const byte of body) {
      connection.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await connection.answer()).status).toBe(204);
    expect(bodies().get(golden.id)).toBe(body.toString());
    connection.end();
  });

  test('a signed empty body is accepted, and the pipeline judges it', async () => {
    const { deliver, port, bodies } = await listening();
    expect((await deliver({ body: '' })).status).toBe(204);
    expect(bodies().get(golden.id)).toBe('');
    // Neither Content-Length nor Transfer-Encoding also means in HTTP that there is no body.
    const bare = requestBytes({ headers: signedHeaders({ id: 'msg_bare', body: '' }) });
    const text = bare.toString('latin1').replace('content-length: 0\r\n', '');
    expect((await exchange(port, Buffer.from(text, 'latin1'))).status).toBe(204);
  });

  test('a body of exactly the limit is accepted, and one more byte is answered with 413', async () => {
    const { deliver, receiver } = await listening();
    const body = `"${'x'.repeat(limits.webhookBodyBytesMax - 2)}"`;
    expect((await deliver({ body })).status).toBe(204);
    const answer = await deliver({ body: `${body} ` });
    expect(answer).toMatchObject({ status: 413, headers: { connection: 'close' } });
    expect(receiver.counters['too-large']).toBe(1);
  });

  test('a Content-Length above the limit is answered with 413 before a byte of the body is sent', async () => {
    const { port } = await listening();
    const promised = ['content-length', String(limits.webhookBodyBytesMax + 1)] as const;
    const answer = await exchange(port, { headers: [...signedHeaders(), promised] });
    expect(answer).toMatchObject({ status: 413, headers: { connection: 'close' } });
  });

  const doors: [method: string, path: string, headers: readonly (readonly [string, string])[]][] = [
    ['POST', '/webhooks', signedHeaders()],
    ['POST', '/webhooks', []],
    ['PUT', '/webhooks', signedHeaders()],
    ['POST', '/x', []],
    ['POST', '/%zz', []],
    ['GET', '/healthz', []],
    ['HEAD', '/readyz', []],
    ['POST', '/webhooks', [['expect', '100-continue']]],
    ['POST', '/webhooks', [['expect', 'more']]],
    [
      'GET',
      '/healthz',
      [
        ['connection', 'upgrade'],
        ['upgrade', 'websocket'],
      ],
    ],
    ['POST', '/webhooks', Array.from({ length: 190 }, () => ['a', ''] as const)],
  ];
  test.each(doors)(
    '%s %s with 4,000 chunks of a byte is answered with 411, and no chunk is parsed',
    async (method, path, headers) => {
      const { port, receiver, deliver } = await listening();
      const pieces = countPieces();
      const connection = await RawConnection.open(port);
      const head = requestBytes({ method, path, headers: [...headers, chunked] });
      // A second request in the same read is not parsed either.
      connection.write(Buffer.concat([head, Buffer.from(chunks), head]));
      const answer = await connection.answer();
      expect(answer).toMatchObject({ status: 411, headers: { connection: 'close' } });
      await connection.closed;
      expect(pieces()).toBe(0);
      expect(receiver.counters['length-required']).toBe(1);
      expect((await deliver()).status).toBe(204);
      expect(pieces()).toBe(1);
    },
  );

  test('a signed delivery that asks for an upgrade is accepted like any other', async () => {
    const { port } = await listening();
    const upgrade = [
      ['connection', 'upgrade'],
      ['upgrade', 'websocket'],
    ] as const;
    const headers = [...signedHeaders(), ...upgrade];
    expect((await exchange(port, { headers, body: golden.body })).status).toBe(204);
  });

  test('no number of headers can hide a Transfer-Encoding', async () => {
    const { port } = await listening();
    const pieces = countPieces();
    const many = Array.from({ length: httpLimits.headersMax }, () => ['a', ''] as const);
    const connection = await RawConnection.open(port);
    connection.write(requestBytes({ path: '/x', headers: [...many, chunked] }));
    connection.write(chunks);
    expect((await connection.answer()).status).toBe(431);
    await connection.closed;
    expect(pieces()).toBe(0);
  });

  const refused: [method: string, path: string, status: number][] = [
    ['POST', '/webhooks', 401],
    ['PUT', '/webhooks', 405],
    ['POST', '/x', 404],
    ['POST', '/%zz', 404],
    ['GET', '/healthz', 200],
    ['GET', '/readyz', 200],
  ];
  test.each(refused)(
    '%s %s with an endless body is answered with %i before the body, and its socket is closed',
    async (method, path, status) => {
      const { port } = await listening();
      const connection = await RawConnection.open(port);
      const length = ['content-length', '1000000'] as const;
      connection.write(requestBytes({ method, path, headers: [length] }));
      expect(await connection.answer()).toMatchObject({ status, headers: { connection: 'close' } });
      await connection.closed;
    },
  );

  test('the largest body is accepted in as many pieces as a network may split it into', async () => {
    const { port } = await listening();
    const body = 'x'.repeat(limits.webhookBodyBytesMax);
    const length = ['content-length', String(body.length)] as const;
    const connection = await RawConnection.open(port);
    connection.write(requestBytes({ headers: [...signedHeaders({ body }), length] }));
    for (let at = 0; at < body.length; at += 512) connection.write(body.slice(at, at + 512));
    expect((await connection.answer()).status).toBe(204);
    connection.end();
  });

  test.each([
    ['text/plain'],
    ['application/json; charset=utf-16'],
    ['multipart/form-data'],
    [';;;'],
    ['application/x-www-form-urlencoded'],
  ])('a signed body of content type "%s" is accepted', async (type) => {
    const { port } = await listening();
    const headers = [...signedHeaders(), ['content-type', type]] as const;
    expect((await exchange(port, { headers, body: golden.body })).status).toBe(204);
    const forged = [...signedHeaders({ body: 'other' }), ['content-type', type]] as const;
    expect((await exchange(port, { headers: forged, body: golden.body })).status).toBe(401);
  });

  test('bodies that are not UTF-8 are not verified, even with the signature of their replacement', async () => {
    const { deliver, receiver } = await listening();
    const bodies = [Buffer.from('7b22ff227d', 'hex'), Buffer.from('7b22fe227d', 'hex')] as const;
    expect(macOf({ body: bodies[0] })).not.toEqual(macOf({ body: bodies[1] }));
    for (const body of bodies) expect((await deliver({ body })).status).toBe(401);
    // The library would have signed the replacement character in its place.
    expect((await deliver({ body: '{"\ufffd"}' })).status).toBe(204);
    expect(receiver.counters['body-not-utf8']).toBe(2);
  });

  const authentic: [what: string, body: string][] = [
    ['a byte order mark, emoji and line separators', '\ufeff{"a":"🔌🏳️‍🌈","b":"\u2028\u2029","c":"𝔘"}\n'],
    ['text that is not JSON', 'hello'],
    ['a JSON scalar', '42'],
    ['a JSON array', '[1]'],
    ['nesting 100,000 deep', nested.endless],
    ['nesting 100,000 deep that ends', nested.array],
    ['objects 100,000 deep in a field', nested.object],
    ['keys of prototypes', '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'],
    ['the same key twice', '{"eventType":"a","eventType":"b"}'],
    ['numbers past what a double holds', '{"a":9007199254740993,"b":1e400,"c":-0}'],
    ['escaped NUL and lone surrogate', '{"a":"\\u0000","b":"\\ud800"}'],
    ['a raw NUL', '{"a":"\u0000"}'],
    ['impossible dates', '{"updated":"275761-01-01","b":"2025-02-30","c":"infinity"}'],
    ['an unknown type', '{"eventType":"planet.moved.v9","more":true}'],
    ['an event of 350 kB', JSON.stringify({ text: 'ü"\\'.repeat(60_000) })],
  ];
  test.each(authentic)('%s, signed, is accepted unchanged', async (_what, body) => {
    const { deliver, bodies } = await listening();
    expect((await deliver({ body })).status).toBe(204);
    expect(bodies().get(golden.id)).toBe(body);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  test.each(Object.entries(nested))('nesting (%s) costs less than 50 ms of work', async (_shape, body) => {
    const { deliver } = await listening();
    const before = process.threadCpuUsage();
    for (let n = 0; n < 10; n += 1) expect((await deliver({ id: `msg_${n}`, body })).status).toBe(204);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1_000 / 10).toBeLessThan(50);
  });
});
