import { describe, expect, test } from 'vitest';
import type { RefusalReason } from '../../receiver/verify.ts';
import { listening } from './listening.ts';
import { exchange, RawConnection, requestBytes } from './raw-http.ts';
import { golden, keyOf, macOf, otherSecret, signatureOf, signedHeaders } from './signing.ts';

/** Answers must give away nothing: neither the reason, nor anything of the request. */
const unverified = { status: 401, body: '{"error":"Unauthorized"}' };
const seconds = (offset: number) => String(Number(golden.timestamp) + offset);

const wrongSignatures = (count: number) =>
  Array.from({ length: count }, (_, n) => signatureOf({ key: Buffer.alloc(24, n + 100) }));

describe('hostile headers', () => {
  test('the published test vector is accepted', async () => {
    const { deliver, port, bodies } = await listening();
    const headers: [string, string][] = [
      ['webhook-id', golden.id],
      ['webhook-timestamp', golden.timestamp],
      ['webhook-signature', golden.signature],
    ];
    expect(await exchange(port, { headers, body: golden.body })).toMatchObject({ status: 204, body: '' });
    expect(bodies().get(golden.id)).toBe(golden.body);
    expect(await deliver()).toMatchObject({ status: 204 });
  });

  test.each(['webhook', 'svix', 'Webhook', 'SVIX', 'utility-vendor'])(
    'a complete set of headers with prefix %s is accepted',
    async (prefix) => {
      const { port } = await listening({ headerPrefix: 'Utility-Vendor-' });
      const answer = await exchange(port, { headers: signedHeaders({}, prefix), body: golden.body });
      expect(answer.status).toBe(204);
    },
  );

  test.each([
    ['of 200 printable characters', '!"/~'.repeat(50), 204, 'durable'],
    ['of 201 characters', 'm'.repeat(201), 401, 'id-malformed'],
    ['of 10 kB', 'm'.repeat(10_000), 401, 'id-malformed'],
    ['that is empty', '', 401, 'id-malformed'],
    ['with a space', 'msg 1', 401, 'id-malformed'],
    ['outside ASCII', 'msg_\u00e4', 401, 'id-malformed'],
    ['with a control byte', 'msg_\u0001', 400, 'malformed'],
  ] as const)('an id %s gets the right answer', async (_what, id, status, counter) => {
    const { deliver, receiver } = await listening();
    expect((await deliver({ id })).status).toBe(status);
    expect(receiver.counters[counter]).toBe(1);
  });

  type Headers = readonly (readonly [name: string, value: string])[];
  const [id, timestamp, signature] = signedHeaders() as [
    [string, string],
    [string, string],
    [string, string],
  ];
  const svix = signedHeaders({}, 'svix') as [[string, string], [string, string], [string, string]];
  const mac = macOf({});
  const base64 = mac.toString('base64');
  const withSignature = (text: string): Headers => [id, timestamp, ['webhook-signature', text]];
  const malformed = [
    ...[3, 8, 11, 20, 46].map((length) => signatureOf({}).slice(0, length)),
    ...['v1,', 'v1', '', ',', `,${base64}`, `v1,${base64},extra`, base64],
    ...['v0', 'v2', 'V1', 'v1a'].map((version) => `${version},${base64}`),
    `v1,${mac.toString('hex')}`,
    `v1,${Buffer.alloc(32, 0xff).toString('base64url')}=`,
    `v1,${base64.slice(0, -1)}`,
    `v1,${base64.slice(0, 20)}\t${base64.slice(20)}`,
    `v1,${base64.slice(0, -2)}F=`,
  ];
  /** Deliveries whose headers are enough to refuse them. */
  const early: [what: string, headers: Headers, reason: RefusalReason][] = [
    ['no id', [timestamp, signature], 'headers-missing'],
    ['no timestamp', [id, signature], 'headers-missing'],
    ['no signature', [id, timestamp], 'headers-missing'],
    ['the id of another family', [svix[0], timestamp, signature], 'headers-mixed'],
    ['the id of another family too', [id, timestamp, signature, svix[0]], 'headers-mixed'],
    ['two complete families', [id, timestamp, signature, ...svix], 'headers-mixed'],
    ...svix.map(([name, value]): (typeof early)[number] => [
      `${name} twice`,
      [...svix, [name.toUpperCase(), value]],
      'header-repeated',
    ]),
    ['an id with a dot', signedHeaders({ id: 'msg.1' }), 'id-malformed'],
    ['an encoding', [...signedHeaders(), ['content-encoding', 'gzip']], 'encoded'],
    ['an old timestamp', signedHeaders({ timestamp: seconds(-301) }), 'timestamp-old'],
    ...malformed.map((text): (typeof early)[number] => [
      `the signature "${text}"`,
      withSignature(text),
      'signature-malformed',
    ]),
    ...[16, 240].map((wrong): (typeof early)[number] => [
      `${wrong} wrong signatures after the right one`,
      withSignature([golden.signature, ...wrongSignatures(wrong)].join(' ')),
      'signatures-too-many',
    ]),
  ];
  test.each(early)(
    'a delivery with %s is refused before a byte of its body is sent, and its socket is closed',
    async (_what, headers, reason) => {
      const { port, receiver } = await listening();
      const connection = await RawConnection.open(port);
      connection.write(requestBytes({ headers: [...headers, ['content-length', '1000000']] }));
      const answer = reason === 'encoded' ? { status: 415 } : unverified;
      expect(await connection.answer()).toMatchObject({ ...answer, headers: { connection: 'close' } });
      await connection.closed;
      expect(receiver.counters[reason]).toBe(1);
    },
  );

  test.each<[what: string, headers: Headers]>([
    ['another timestamp', [id, [timestamp[0], seconds(1)], signature]],
    ['another id', [[id[0], `${id[1]}x`], timestamp, signature]],
    ['a signature by the empty key', signedHeaders({ key: '' })],
    ['a signature by the secret of another endpoint', signedHeaders({ key: keyOf(otherSecret) })],
  ])('a delivery with %s is not verified', async (_what, headers) => {
    const { port, receiver } = await listening();
    expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    expect(receiver.counters['signature-wrong']).toBe(1);
  });

  test.each([
    'abc',
    '1614265330junk',
    '1614265330.0',
    '+1614265330',
    '01614265330',
    '0x60380832',
    '1e9',
    '1614265330000',
    '-161426533',
    '0',
    '9223372036854775808',
    '1'.repeat(400),
  ])('the timestamp %s is not verified, even though it is signed', async (timestamp) => {
    const { deliver, receiver } = await listening();
    expect(await deliver({ timestamp })).toMatchObject(unverified);
    expect(receiver.counters['timestamp-malformed']).toBe(1);
  });

  test.each([
    [-301, 401],
    [-300, 204],
    [-299, 204],
    [299, 204],
    [300, 204],
    [301, 401],
  ])('a delivery signed %i s from now is answered with %i', async (offset, status) => {
    const { deliver } = await listening();
    expect((await deliver({ timestamp: seconds(offset) })).status).toBe(status);
  });

  test('the last of eleven signatures verifies', async () => {
    const { port } = await listening();
    const headers = signedHeaders();
    headers[2] = ['webhook-signature', [...wrongSignatures(10), golden.signature].join(' ')];
    expect((await exchange(port, { headers, body: golden.body })).status).toBe(204);
  });

  test('a header block of more than 16 kB is answered with 431, and the socket is closed', async () => {
    const { port, receiver } = await listening();
    const headers = [...signedHeaders(), ['x-much', 'x'.repeat(16_500)] as [string, string]];
    const answer = await exchange(port, { headers, body: golden.body });
    expect(answer).toMatchObject({ status: 431, headers: { connection: 'close' } });
    expect(receiver.counters['headers-too-large']).toBe(1);
  });
});
