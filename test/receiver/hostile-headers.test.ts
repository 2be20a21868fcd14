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

describe('hostile headers, by their row in the table of hostile inputs', () => {
  test('1: the published test vector is accepted', async () => {
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
    '1: a complete set of headers with prefix %s is accepted',
    async (prefix) => {
      const { port } = await listening({ headerPrefix: 'Utility-Vendor-' });
      const answer = await exchange(port, { headers: signedHeaders({}, prefix), body: golden.body });
      expect(answer.status).toBe(204);
    },
  );

  const unsigned = signedHeaders().slice(0, 2);
  test.each([
    ['2', 'no id', signedHeaders().slice(1), 401],
    ['4', 'no signature', unsigned, 401],
    ['5', 'two families mixed', [...unsigned, ['svix-signature', golden.signature]], 401],
    ['8', 'an id with a dot', signedHeaders({ id: 'msg.1' }), 401],
    ['14', 'an old timestamp', signedHeaders({ timestamp: seconds(-301) }), 401],
    ['25', 'half a signature', [...unsigned, ['webhook-signature', golden.signature.slice(0, 20)]], 401],
    ['44', 'an encoding', [...signedHeaders(), ['content-encoding', 'gzip']], 415],
  ] as [string, string, [string, string][], number][])(
    '%s: %s is refused before a byte of the body is sent, and the socket is closed',
    async (_row, _what, headers, status) => {
      const { port } = await listening();
      const connection = await RawConnection.open(port);
      connection.write(requestBytes({ headers: [...headers, ['content-length', '1000000']] }));
      expect(await connection.answer()).toMatchObject({ status, headers: { connection: 'close' } });
      await connection.closed;
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
  ] as const)('9: an id %s gets the right answer', async (_what, id, status, counter) => {
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
  const signedBy = (key: Buffer | string): Headers => signedHeaders({ key });
  const withSignature = (text: string): Headers => [id, timestamp, ['webhook-signature', text]];
  const beginnings = [3, 8, 11, 20, 46].map((length) => signatureOf({}).slice(0, length));
  const malformed: [row: string, signatures: readonly string[]][] = [
    ['24', beginnings],
    ['25', ['v1,', 'v1', '', ',', `,${base64}`, `v1,${base64},extra`, base64]],
    ['26', ['v0', 'v2', 'V1'].map((version) => `${version},${base64}`)],
    ['27', [`v1a,${base64}`]],
    [
      '29',
      [
        `v1,${mac.toString('hex')}`,
        `v1,${Buffer.alloc(32, 0xff).toString('base64url')}=`,
        `v1,${base64.slice(0, -1)}`,
        `v1,${base64.slice(0, 20)}\t${base64.slice(20)}`,
        `v1,${base64.slice(0, -2)}F=`,
      ],
    ],
  ];
  const refused: [row: string, what: string, headers: Headers, reason: RefusalReason][] = [
    ['2', 'no id', [timestamp, signature], 'headers-missing'],
    ['3', 'no timestamp', [id, signature], 'headers-missing'],
    ['4', 'no signature', [id, timestamp], 'headers-missing'],
    ['5', 'the id of another family', [svix[0], timestamp, signature], 'headers-mixed'],
    ['5', 'the id of another family too', [id, timestamp, signature, svix[0]], 'headers-mixed'],
    ['6', 'two complete families', [id, timestamp, signature, ...svix], 'headers-mixed'],
    ...[0, 1, 2].map((index): [string, string, Headers, RefusalReason] => {
      const [name, value] = svix[index] as [string, string];
      return ['7', `${name} twice`, [...svix, [name.toUpperCase(), value]], 'header-repeated'];
    }),
    ['17', 'another timestamp', [id, [timestamp[0], seconds(1)], signature], 'signature-wrong'],
    ['17', 'another id', [[id[0], `${id[1]}x`], timestamp, signature], 'signature-wrong'],
    ...malformed.flatMap(([row, signatures]) =>
      signatures.map((text): [string, string, Headers, RefusalReason] => [
        row,
        `the signature "${text}"`,
        withSignature(text),
        'signature-malformed',
      ]),
    ),
    ...[16, 240].map((wrong): [string, string, Headers, RefusalReason] => [
      '33',
      `${wrong} wrong signatures after the right one`,
      withSignature([golden.signature, ...wrongSignatures(wrong)].join(' ')),
      'signatures-too-many',
    ]),
    ['35', 'a signature by the empty key', signedBy(''), 'signature-wrong'],
    ['36', 'a signature by the secret of another endpoint', signedBy(keyOf(otherSecret)), 'signature-wrong'],
  ];
  test.each(refused)('%s: a delivery with %s is not verified', async (_row, _what, headers, reason) => {
    const { port, receiver } = await listening();
    expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    expect(receiver.counters[reason]).toBe(1);
  });

  const looseTimestamps = [
    '1614265330junk',
    '1614265330.0',
    '+1614265330',
    '01614265330',
    '0x60380832',
    '1e9',
  ];
  test.each([
    ['10', 'abc'],
    ...looseTimestamps.map((timestamp) => ['11', timestamp]),
    ['12', '1614265330000'],
    ['13', '-161426533'],
    ['13', '0'],
    ['13', '9223372036854775808'],
    ['13', '1'.repeat(400)],
  ])('%s: timestamp %s is not verified, even though it is signed', async (_row, timestamp) => {
    const { deliver, receiver } = await listening();
    expect(await deliver({ timestamp })).toMatchObject(unverified);
    expect(receiver.counters['timestamp-malformed']).toBe(1);
  });

  test.each([
    ['14', -301, 401],
    ['14', -300, 204],
    ['15', -299, 204],
    ['15', 299, 204],
    ['16', 300, 204],
    ['16', 301, 401],
  ])('%s: a delivery signed %i s from now is answered with %i', async (_row, offset, status) => {
    const { deliver } = await listening();
    expect((await deliver({ timestamp: seconds(offset) })).status).toBe(status);
  });

  test('32: the last of eleven signatures verifies', async () => {
    const { port } = await listening();
    const headers = signedHeaders();
    headers[2] = ['webhook-signature', [...wrongSignatures(10), golden.signature].join(' ')];
    expect((await exchange(port, { headers, body: golden.body })).status).toBe(204);
  });

  test('34: a header block of more than 16 kB is answered with 431, and the socket is closed', async () => {
    const { port, receiver } = await listening();
    const headers = [...signedHeaders(), ['x-much', 'x'.repeat(16_500)] as [string, string]];
    const answer = await exchange(port, { headers, body: golden.body });
    expect(answer).toMatchObject({ status: 431, headers: { connection: 'close' } });
    expect(receiver.counters['headers-too-large']).toBe(1);
  });
});
