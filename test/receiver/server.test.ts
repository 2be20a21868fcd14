import { describe, expect, test } from 'vitest';
import { limits } from '../../contract/limits.ts';
import { answerStatus } from '../../receiver/answers.ts';
import { httpLimits } from '../../receiver/http-limits.ts';
import { listening } from './listening.ts';
import { ManualClock } from './manual-clock.ts';
import { exchange, RawConnection, requestBytes } from './raw-http.ts';
import { golden, signedHeaders } from './signing.ts';

const delivery = (id: string) => requestBytes({ headers: signedHeaders({ id }), body: golden.body });

/** A start that ends when the test says so. */
function heldStart() {
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const start = async () => {
    begun.resolve();
    await held.promise;
  };
  return { start, begun: begun.promise, release: held.resolve };
}

/** Moves the clock until the answer is there, because the request may begin after the clock. */
async function advanceUntil<T>(clock: ManualClock, answer: Promise<T>): Promise<T> {
  let pending = true;
  void answer.then(() => {
    pending = false;
  });
  for (let turns = 0; pending && turns < 100_000; turns += 1) {
    await clock.advance(5);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return answer;
}

describe('answers to deliveries', () => {
  test('204 is sent only after the start has returned', async () => {
    const { start, begun, release } = heldStart();
    const { port, receiver } = await listening({ start });
    const connection = await RawConnection.open(port);
    connection.write(delivery('msg_1'));
    await begun;
    // A second request is answered meanwhile, so the first request could have been answered.
    expect((await exchange(port, { method: 'GET', path: '/healthz' })).status).toBe(200);
    expect(receiver.counters.durable).toBe(0);
    release();
    expect(await connection.answer()).toMatchObject({ status: 204, body: '' });
    expect(receiver.counters.durable).toBe(1);
    connection.end();
  });

  test('service.md 4.1.4: a delivery from another origin, without a cookie or session token, is accepted', async () => {
    const { port, starts } = await listening();
    const elsewhere = [
      ['origin', 'https://elsewhere.test'],
      ['sec-fetch-site', 'cross-site'],
    ] as const;
    const headers = [...signedHeaders(), ...elsewhere];
    expect((await exchange(port, { headers, body: golden.body })).status).toBe(204);
    expect(starts).toHaveLength(1);
  });

  test('the event carries the signed body and its arrival time', async () => {
    const { deliver, starts } = await listening();
    await deliver();
    expect(starts).toMatchObject([
      {
        workflowId: `event/${golden.id}/1614265330`,
        group: {
          events: [
            {
              id: golden.id,
              timestamp: 1_614_265_330,
              receivedAt: '2021-02-25T15:02:10.000Z',
              body: golden.body,
            },
          ],
        },
      },
    ]);
  });

  test.each([
    ['away', () => Promise.reject(new Error('14 UNAVAILABLE'))],
    ['exhausted', () => Promise.reject(new Error('8 RESOURCE_EXHAUSTED'))],
    ['silent', () => new Promise<void>(() => {})],
  ])(
    'with Temporal %s the answer is 503 with Retry-After within 8 s, and the retry is accepted',
    async (_how, trouble) => {
      const clock = new ManualClock();
      let troubled = true;
      const start = () => (troubled ? trouble() : Promise.resolve());
      const { deliver, bodies, receiver, log } = await listening({ start, clock });
      const answer = await advanceUntil(clock, deliver());
      expect(answer).toMatchObject({
        status: 503,
        headers: { 'retry-after': '10' },
        body: '{"error":"Service Unavailable"}',
      });
      expect(clock.now()).toBeLessThanOrEqual(2 * limits.answerWithinMs);
      expect(bodies().size).toBe(0);
      expect(receiver.counters.unavailable).toBe(1);
      expect(JSON.stringify(log.lines)).toMatch(/UNAVAILABLE|RESOURCE_EXHAUSTED|no answer within/);
      troubled = false;
      expect((await advanceUntil(clock, deliver())).status).toBe(204);
      expect([...bodies().keys()]).toEqual([golden.id]);
    },
  );

  test('the time to answer begins with the request, even if its body arrives late', async () => {
    const clock = new ManualClock();
    const { port, starts } = await listening({ start: () => new Promise<void>(() => {}), clock });
    const headers = [...signedHeaders({ id: 'msg_slow' }), ['expect', '100-continue']] as const;
    const bytes = requestBytes({ headers, body: golden.body });
    const connection = await RawConnection.open(port);
    connection.write(bytes.subarray(0, -1));
    // This answer comes once the head has been read.
    expect(await connection.answer({ bodiless: true })).toMatchObject({ status: 100 });
    await clock.advance(5_000);
    connection.write(bytes.subarray(-1));
    const begun = async () => {
      await clock.turn();
      return starts.map(({ withinMs }) => withinMs);
    };
    await expect.poll(begun).toEqual([limits.answerWithinMs - 5_000]);
    await clock.advance(limits.answerWithinMs - 5_000);
    expect(await connection.answer()).toMatchObject({ status: 503, headers: { 'retry-after': '10' } });
    connection.end();
  });

  test('the answer is 503 with Retry-After at once if the queue is full', async () => {
    const { start, begun, release } = heldStart();
    const { port, deliver, receiver } = await listening({
      start,
      groupLimits: { ...limits, queueEventsMax: 1 },
    });
    const waiting = deliver({ id: 'msg_waiting' });
    await begun;
    const answer = await exchange(port, delivery('msg_2'));
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '10' } });
    expect(answer.headers.connection).not.toBe('close');
    expect(receiver.counters.busy).toBe(1);
    release();
    expect((await waiting).status).toBe(204);
  });

  test('above the common limit of large bodies the body that began first is ended', async () => {
    const { port, deliver, receiver } = await listening({ limits: { largeBodiesBytesMax: 300_000 } });
    const body = 'x'.repeat(140_000);
    const headers = [...signedHeaders({ id: 'msg_half', body }), ['content-length', '140000']] as const;
    const halves: RawConnection[] = [];
    for (let n = 0; n < 3; n += 1) {
      const half = await RawConnection.open(port);
      half.write(requestBytes({ headers, body: body.slice(0, 139_000) }));
      halves.push(half);
      // The bodies have been read by the time that this request is answered.
      expect((await exchange(port, { method: 'GET', path: '/healthz' })).status).toBe(200);
    }
    const [first, ...others] = halves as [RawConnection, RawConnection, RawConnection];
    expect(await first.answer()).toMatchObject({
      status: 503,
      headers: { connection: 'close', 'retry-after': '10' },
    });
    for (const half of others) half.write(body.slice(139_000));
    for (const half of others) expect((await half.answer()).status).toBe(204);
    expect(receiver.counters.busy).toBe(1);
    expect((await deliver({ body: 'y'.repeat(290_000) })).status).toBe(204);
    for (const half of others) half.end();
  });

  test('large bodies take no memory from small bodies', async () => {
    const small = 'y'.repeat(60_000);
    const { port, receiver } = await listening({ limits: { largeBodiesBytesMax: 100_000 } });
    const half = await RawConnection.open(port);
    const headers = signedHeaders({ id: 'msg_small', body: small });
    const bytes = requestBytes({ headers, body: small });
    half.write(bytes.subarray(0, -1));
    for (let n = 0; n < 5; n += 1) {
      const large = await RawConnection.open(port);
      const length = ['content-length', '90000'] as const;
      large.write(requestBytes({ headers: [...signedHeaders(), length], body: 'x'.repeat(89_999) }));
      await expect.poll(() => receiver.counters.busy).toBe(n);
    }
    half.write(bytes.subarray(-1));
    expect((await half.answer()).status).toBe(204);
    half.end();
  });

  test('an internal error is logged and answered with 503 without details', async () => {
    const { deliver, receiver, log } = await listening({
      now: () => {
        throw new Error('the clock is gone');
      },
    });
    const answer = await deliver();
    expect(answer).toMatchObject({ status: 503, body: '{"error":"Service Unavailable"}' });
    expect(receiver.counters.failed).toBe(1);
    expect(log.lines.some(({ level }) => level === 'error')).toBe(true);
  });
});

describe('answers to everything else', () => {
  test.each([
    '/',
    '/webhooks/',
    '/webhooks/extra',
    '/WEBHOOKS',
    '/webhook',
    '/%2e%2e/webhooks',
    '/%zz',
    '/healthz/x',
  ])('%s is answered with 404 without the path', async (path) => {
    const { port, starts } = await listening();
    const answer = await exchange(port, { path, headers: signedHeaders(), body: golden.body });
    expect(answer).toMatchObject({ status: 404, body: '{"error":"Not Found"}' });
    expect(starts).toHaveLength(0);
  });

  test.each([
    ['POST', '/other', 404],
    ['PUT', '/webhooks', 405],
    ['QUERY', '/webhooks', 405],
  ])(
    '%s %s is answered with %i, whatever the type of the body, and is not counted as a failure',
    async (method, path, status) => {
      const { port, receiver, log } = await listening();
      for (const type of ["%{(#_='multipart/form-data')}", 'none', 'text/plain', '']) {
        const headers = [['content-type', type]] as const;
        expect((await exchange(port, { method, path, headers, body: '{}' })).status).toBe(status);
      }
      expect((await exchange(port, { method, path })).status).toBe(status);
      expect(receiver.counters.failed).toBe(0);
      expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
    },
  );

  test('no answer redirects, says gone, or returns a header of the request', async () => {
    const { port } = await listening();
    const echo = ['webhook-delivery', 'disable'] as const;
    for (const path of ['/webhooks', '/other', '/healthz', '/readyz']) {
      for (const method of ['GET', 'POST', 'OPTIONS', 'PUT']) {
        const headers = [...signedHeaders(), echo, ['origin', 'https://elsewhere.test'] as const];
        const answer = await exchange(port, {
          method,
          path,
          headers,
          body: method === 'GET' ? '' : golden.body,
        });
        expect([200, 204, 404, 405]).toContain(answer.status);
        expect(Object.keys(answer.headers).sort()).toEqual(
          expect.not.arrayContaining(['webhook-delivery', 'location', 'server', 'x-powered-by']),
        );
        expect(JSON.stringify(answer)).not.toContain('disable');
      }
    }
    expect(
      Object.values(answerStatus).filter(
        (status: number) => status === 410 || (status >= 300 && status < 400),
      ),
    ).toEqual([]);
  });

  test('healthz says whether the process is alive, and readyz whether it can accept events', async () => {
    let isReady: () => boolean | Promise<boolean> = () => true;
    const { port } = await listening({ ready: () => isReady(), limits: { readyForMs: 0 } });
    const get = async (path: string) => (await exchange(port, { method: 'GET', path })).status;
    expect([await get('/healthz'), await get('/readyz')]).toEqual([200, 200]);
    isReady = async () => false;
    expect([await get('/healthz'), await get('/readyz')]).toEqual([200, 503]);
    isReady = () => {
      throw new Error('unknown');
    };
    expect([await get('/healthz'), await get('/readyz')]).toEqual([200, 503]);
    expect((await exchange(port, { method: 'HEAD', path: '/healthz' })).status).toBe(200);
  });
});

describe('counters and log', () => {
  test('a flood of refusals is counted completely and logged once per minute and reason', async () => {
    const { deliver, receiver, log } = await listening();
    for (let n = 0; n < 30; n += 1) await deliver({ key: 'another key' });
    for (let n = 0; n < 3; n += 1) await deliver({ timestamp: '1000000000' });
    expect(receiver.counters).toMatchObject({ 'signature-wrong': 30, 'timestamp-old': 3, durable: 0 });
    expect(log.lines.map(({ fields }) => fields)).toEqual([
      { reason: 'signature-wrong', status: 401, soFar: 1 },
      { reason: 'timestamp-old', status: 401, soFar: 1 },
    ]);
  });
});

describe('close', () => {
  /** Begins requests, and resolves when the server reads them: a socket without a request is idle. */
  const beginRequests = async (port: number, ...requests: Buffer[]): Promise<RawConnection[]> => {
    const connections = await Promise.all(requests.map(() => RawConnection.open(port)));
    for (const [index, connection] of connections.entries()) connection.write(requests[index] as Buffer);
    // The server reads sockets in the order of their bytes, so this answer comes after them.
    await exchange(port, { method: 'GET', path: '/healthz' });
    return connections;
  };

  test('accepted events are answered, and new requests get 503 with Connection: close', async () => {
    const { start, begun, release } = heldStart();
    const socketClock = new ManualClock();
    const { port, receiver, commit } = await listening({ start, socketClock });
    const bytes = delivery('msg_late');
    const [taken, late] = (await beginRequests(port, delivery('msg_taken'), bytes.subarray(0, 40))) as [
      RawConnection,
      RawConnection,
    ];
    await begun;
    const closed = receiver.close();
    late.write(bytes.subarray(40));
    expect(await late.answer()).toMatchObject({
      status: 503,
      headers: { connection: 'close', 'retry-after': '10' },
    });
    expect(receiver.counters.closing).toBe(1);
    await socketClock.advance(60_000);
    release();
    expect(await taken.answer()).toMatchObject({ status: 204, headers: { connection: 'close' } });
    await Promise.all([closed, commit.drain()]);
    await expect(RawConnection.open(port)).rejects.toThrow('ECONNREFUSED');
  });

  test('sockets that never finish their request do not delay the close', async () => {
    const socketClock = new ManualClock();
    const { port, receiver } = await listening({ socketClock });
    const [slow] = (await beginRequests(port, delivery('msg_slow').subarray(0, 40))) as [RawConnection];
    const closed = receiver.close();
    await expect.poll(() => receiver.server.listening).toBe(false);
    await socketClock.advance(httpLimits.closeGraceMs - 1);
    expect(slow.socket.destroyed).toBe(false);
    await socketClock.advance(1);
    await Promise.all([closed, slow.closed]);
  });
});

test('the server has the limits of the HTTP edge, and closes no socket before its answer or before a proxy would close it', async () => {
  const { receiver } = await listening();
  expect(receiver.server).toMatchObject({
    headersTimeout: httpLimits.headersTimeoutMs,
    requestTimeout: httpLimits.requestTimeoutMs,
    timeout: httpLimits.connectionTimeoutMs,
    // This is longer than the minute for which proxies keep their sockets.
    keepAliveTimeout: 72_000,
    maxConnections: httpLimits.connectionsMax,
  });
  expect(receiver.initialConfig).toMatchObject({ bodyLimit: limits.webhookBodyBytesMax, handlerTimeout: 0 });
  // A request that waits for its group is silent on its socket until its answer.
  expect(httpLimits.connectionTimeoutMs).toBeGreaterThan(limits.answerWithinMs);
  // The time to answer begins after the headers; the service gives up after 15 s in all.
  const { headersTimeoutMs, connectionsCheckMs } = httpLimits;
  expect(headersTimeoutMs + connectionsCheckMs + limits.answerWithinMs).toBeLessThan(15_000);
});
