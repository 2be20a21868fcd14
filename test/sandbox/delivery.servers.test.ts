import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import {
  type Answerer,
  answerWith,
  type Delivery,
  type Receiver,
  startReceiver,
} from './support/receiver.ts';
import { type AnyRecord, companiesOf, recordsOf, startService } from './support/service.ts';

interface Endpoint {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
}

let receiver: Receiver;
const endpoints: Endpoint[] = [];

const service = await forFile(startService({ companies: 1, documents: 4, intervalDays: 0 }));
await service.enableWebhooks();
const [company] = (await companiesOf(service)) as [AnyRecord];
const meterId = (await recordsOf(service, 'meter', company.id, 'meters'))[0].id;
const connectionId = (await recordsOf(service, 'connection', company.id, 'connections'))[0].id;
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(async () => {
  for (const { id } of endpoints.splice(0)) await service.control('DELETE', `/sandbox/endpoints/${id}`);
  await receiver.close();
});

async function endpoint(more: object = {}): Promise<Endpoint> {
  const added = await service.control<Endpoint>('POST', '/sandbox/endpoints', { url: receiver.url, ...more });
  endpoints.push(added);
  return added;
}
const advance = (advanceSeconds: number) => service.control('POST', '/sandbox/clock', { advanceSeconds });
const bill = () => service.change({ type: 'createDocument', meterId });
const arrived = (count: number) =>
  until(
    `${count} deliveries arrive (${receiver.deliveries.length} have)`,
    () => receiver.deliveries.length >= count,
  );
const headersOf = ({ headers }: Delivery) => headers as Record<string, string>;
const deliveriesOf = async (endpointId: string, state?: string): Promise<AnyRecord[]> => {
  const query = `endpointId=${endpointId}&limit=10000${state === undefined ? '' : `&state=${state}`}`;
  return (await service.control<{ deliveries: AnyRecord[] }>('GET', `/sandbox/deliveries?${query}`))
    .deliveries;
};
const attemptsOf = async (deliveryId: number): Promise<AnyRecord[]> =>
  (await service.control<{ attempts: AnyRecord[] }>('GET', `/sandbox/deliveries/${deliveryId}/attempts`))
    .attempts;
const settled = (endpointId: string, state: string) =>
  until(`the delivery is ${state}`, async () => (await deliveriesOf(endpointId, state))[0]);

describe('a delivery', () => {
  test('service.md 4.1.1, 1.4: is a POST with a JSON body to every subscribed endpoint, with the stored payload byte for byte', async () => {
    await endpoint();
    await endpoint();
    const { events } = await bill();
    await arrived(2);
    const [event] = await service.eventsAfter((events[0]?.seq ?? 0) - 1);
    for (const { method, headers, body } of receiver.deliveries) {
      expect(method).toBe('POST');
      expect(headers['content-type']).toBe('application/json');
      expect(JSON.parse(body)).toEqual(event?.payload);
    }
    expect(receiver.deliveries[0]?.body).toBe(receiver.deliveries[1]?.body);
  });

  test('service.md 5.2, 5.3, 5.4, 7 row 3: is signed with the secret of its endpoint, and two libraries verify it', async () => {
    const one = await endpoint();
    const other = await endpoint();
    expect(one.secret).toMatch(/^whsec_/);
    expect(Buffer.from(one.secret.slice(6), 'base64').length).toBeGreaterThanOrEqual(24);
    expect(one.secret).not.toBe(other.secret);
    await bill();
    await arrived(2);
    const verified = [one, other].map(({ secret }) => {
      const passes = receiver.deliveries.filter((delivery) => {
        try {
          new StandardWebhook(secret).verify(delivery.body, headersOf(delivery));
          return true;
        } catch {
          return false;
        }
      });
      expect(passes).toHaveLength(1);
      const [pass] = passes as [Delivery];
      expect(() => new SvixWebhook(secret).verify(pass.body, headersOf(pass))).not.toThrow();
      const reserialised = JSON.stringify(JSON.parse(pass.body), null, 1);
      expect(() => new StandardWebhook(secret).verify(reserialised, headersOf(pass))).toThrow();
      return pass;
    });
    for (const { headers } of verified) {
      expect(headers['webhook-id']).toMatch(/^msg_[\x21-\x2d\x2f-\x7e]+$/);
      expect(headers['webhook-timestamp']).toMatch(/^\d{10}$/);
      expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
    }
  });

  test('service.md 6.1.2: reaches an endpoint without types for every event, and an endpoint with types only for events of these types', async () => {
    const other = await startReceiver();
    await endpoint();
    await endpoint({ url: other.url, eventTypes: ['connection.validated.v2'] });
    await bill();
    const status = (await service.api<AnyRecord>(`/connection/${connectionId}`)).body.status;
    const next = status === 'CONNECTED' ? 'WEBSITE_DOWN' : 'CONNECTED';
    await service.change({ type: 'validateConnection', connectionId, status: next });
    await service.quiet();
    const typesOf = ({ deliveries }: Receiver) =>
      deliveries.map(({ body }) => JSON.parse(body).eventType).sort();
    expect(typesOf(receiver)).toEqual([
      'connection.updated.v2',
      'connection.validated.v2',
      'document.created.v2',
    ]);
    expect(typesOf(other)).toEqual(['connection.validated.v2']);
    await other.close();
  });

  type Outcome = Readonly<Record<'status' | 'error', unknown>>;
  const outcomes: [what: string, answer: Answerer, state: 'delivered' | 'waiting', attempt: Outcome][] = [
    ...[200, 201, 202, 204, 299].map((status): (typeof outcomes)[number] => [
      `succeeds with status ${status}`,
      answerWith(status, {}, status === 204 ? '' : '{"error": "ignored"}'),
      'delivered',
      { status, error: null },
    ]),
    [
      'succeeds with a status of success, even if the body breaks off',
      (_delivery, response) => {
        response.writeHead(200, { 'content-length': '100' }).write('begun', () => response.destroy());
      },
      'delivered',
      { status: 200, error: null },
    ],
    ...[301, 302, 308, 400, 404, 410, 429, 500, 503].map((status): (typeof outcomes)[number] => [
      `fails with status ${status}`,
      answerWith(status, { location: 'http://127.0.0.1:9/elsewhere' }),
      'waiting',
      { status, error: null },
    ]),
    [
      'fails if the connection is closed',
      (_delivery, response) => response.destroy(),
      'waiting',
      { status: null, error: expect.any(String) },
    ],
  ];
  test.each(outcomes)('service.md 4.1.2, 4.1.3, 7 row 2: %s', async (_what, answer, state, outcome) => {
    receiver.answer = answer;
    const { id } = await endpoint();
    await bill();
    const tried = await until('the attempt has ended', async () =>
      (await deliveriesOf(id, state)).find(({ attempts }) => attempts === 1),
    );
    expect(await attemptsOf(tried.id)).toMatchObject([{ number: 1, ...outcome }]);
    expect(receiver.deliveries).toHaveLength(1);
  });

  test('service.md 4.1.2, 8 row 4: fails without an answer within 15 seconds, even if the endpoint is edited meanwhile', async () => {
    const held: (() => void)[] = [];
    receiver.answer = (_delivery, response) => held.push(() => response.writeHead(204).end());
    const [{ id }, edited] = [await endpoint(), await endpoint()];
    await bill();
    await arrived(2);
    await service.control('POST', `/sandbox/endpoints/${edited.id}/secret`, {});
    for (const endpointId of [id, edited.id]) {
      const failed = await until(
        'the attempt has timed out',
        async () => (await deliveriesOf(endpointId)).find(({ attempts }) => attempts === 1),
        { timeoutMs: 40_000, everyMs: 250 },
      );
      const [attempt] = await attemptsOf(failed.id);
      expect(attempt?.error).toContain('15 s');
      expect(attempt?.durationMs).toBeGreaterThanOrEqual(14_900);
      expect(attempt?.durationMs).toBeLessThan(25_000);
    }
    for (const release of held) release();
  });

  test('keeps the status, headers, duration and the first 20 kB of the answer of each attempt', async () => {
    receiver.answer = answerWith(200, { 'x-answer': 'yes' }, `${'a'.repeat(30_000)}\u0000`);
    const { id } = await endpoint();
    await bill();
    const { id: deliveryId } = await settled(id, 'delivered');
    const [attempt] = await attemptsOf(deliveryId);
    expect(attempt).toMatchObject({ status: 200, duplicate: false });
    expect(attempt?.responseHeaders).toMatchObject({ 'x-answer': 'yes' });
    expect(attempt?.responseBody).toBe('a'.repeat(20_000));
    expect(attempt?.requestHeaders['webhook-id']).toBe(receiver.deliveries[0]?.headers['webhook-id']);
    expect(attempt?.durationMs).toBeTypeOf('number');
  });
});

describe('the retry schedule', () => {
  test('service.md 6.4: every attempt has the same id and bytes, and its own signature that verifies', async () => {
    receiver.answer = answerWith(500);
    const { id, secret } = await endpoint();
    await service.control('POST', '/sandbox/clock', { signatures: 'virtual' });
    await bill();
    for (const [index, delay] of [5, 300].entries()) {
      await until('the attempt has failed', async () => (await deliveriesOf(id))[0]?.attempts === index + 1);
      await advance(delay);
      await arrived(index + 2);
    }
    await service.control('POST', '/sandbox/clock', { signatures: 'real' });
    const messages = receiver.deliveries.map(({ headers, body }) => `${headers['webhook-id']} ${body}`);
    expect(new Set(messages).size).toBe(1);
    const times = receiver.deliveries.map(({ headers }) => Number(headers['webhook-timestamp']));
    expect(times).toEqual([...new Set(times)].sort());
    const signer = new StandardWebhook(secret);
    for (const { headers, body } of receiver.deliveries) {
      const at = new Date(Number(headers['webhook-timestamp']) * 1000);
      expect(headers['webhook-signature']).toBe(signer.sign(String(headers['webhook-id']), at, body));
    }
  });

  test('signatures have the real time, however far the clock was moved', async () => {
    const { secret } = await endpoint();
    await advance(40 * 86_400);
    await bill();
    await arrived(1);
    const [delivery] = receiver.deliveries as [Delivery];
    expect(() => new StandardWebhook(secret).verify(delivery.body, headersOf(delivery))).not.toThrow();
  });

  test('service.md 6.4, 3.2 row 3: remaining attempts are cancelled when the endpoint is removed', async () => {
    receiver.answer = answerWith(500);
    const { id } = await endpoint();
    await bill();
    await until('the attempt has failed', async () => (await deliveriesOf(id))[0]?.attempts === 1);
    await service.control('DELETE', `/sandbox/endpoints/${id}`);
    endpoints.length = 0;
    await advance(100_000);
    await bill();
    await service.quiet();
    expect(receiver.deliveries).toHaveLength(1);
    expect(await deliveriesOf(id)).toMatchObject([{ state: 'cancelled', attempts: 1 }]);
  });
});

test('an endpoint that is put again at another address keeps its secret, and what waits for it goes there', async () => {
  receiver.answer = answerWith(500);
  const put = async (more: object) => {
    const at = await service.control<Endpoint>('PUT', '/sandbox/endpoints/ep_kept', more);
    endpoints.splice(0, 1, at);
    return at;
  };
  const { id, secret } = await put({ url: 'http://127.0.0.1:9/before' });
  expect(id).toBe('ep_kept');
  await bill();
  await until('the attempt has failed', async () => (await deliveriesOf(id))[0]?.attempts === 1);
  expect(await put({ url: receiver.url })).toEqual({
    id,
    url: receiver.url,
    eventTypes: [],
    state: 'active',
    secret,
  });
  receiver.answer = answerWith(204);
  await advance(5);
  await settled(id, 'delivered');
  const [delivery] = receiver.deliveries.slice(-1) as [Delivery];
  expect(() => new StandardWebhook(secret).verify(delivery.body, headersOf(delivery))).not.toThrow();
  // One that was disabled or removed works again.
  for (const remove of [true, false]) {
    if (remove) await service.control('DELETE', `/sandbox/endpoints/${id}`);
    else await service.control('POST', `/sandbox/endpoints/${id}/state`, { state: 'disabled' });
    expect(await put({ url: receiver.url })).toMatchObject({ state: 'active', secret });
  }
});

describe('secret rotation', () => {
  test('keeps the old secret valid for 24 hours, signs with both secrets, and then only with the new one', async () => {
    const { id, secret: old } = await endpoint();
    const rotated = await service.control<Endpoint>('POST', `/sandbox/endpoints/${id}/secret`, {});
    expect(rotated.secret).not.toBe(old);
    const verifies = (secret: string, delivery: Delivery | undefined) => {
      try {
        new StandardWebhook(secret).verify(delivery?.body ?? '', headersOf(delivery as Delivery));
        return true;
      } catch {
        return false;
      }
    };
    await bill();
    await arrived(1);
    expect(receiver.deliveries[0]?.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/);
    expect(verifies(old, receiver.deliveries[0])).toBe(true);
    expect(verifies(rotated.secret, receiver.deliveries[0])).toBe(true);
    await advance(24 * 3600 + 1);
    await bill();
    await arrived(2);
    expect(verifies(old, receiver.deliveries[1])).toBe(false);
    expect(verifies(rotated.secret, receiver.deliveries[1])).toBe(true);
  });
});
