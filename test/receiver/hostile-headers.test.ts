import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { fixedSecrets } from '../../receiver/secrets.ts';
import { listening } from './listening.ts';
import { exchange, RawConnection, requestBytes } from './raw-http.ts';
import {
  frozenNow,
  golden,
  keyOf,
  macOf,
  oldSecret,
  otherSecret,
  signatureOf,
  signedHeaders,
} from './signing.ts';

/** Answers must give away nothing: neither the reason, nor anything of the request. */
const unverified = { status: 401, body: '{"error":"Unauthorized"}' };
const seconds = (offset: number) => String(Number(golden.timestamp) + offset);

describe('hostile headers, by the row of the table of hostile inputs', () => {
  test('1: the published vector is taken', async () => {
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
    '1: a complete family of headers with prefix %s is taken',
    async (prefix) => {
      const { port } = await listening({ headerPrefix: 'Utility-Vendor-' });
      const answer = await exchange(port, { headers: signedHeaders({}, prefix), body: golden.body });
      expect(answer.status).toBe(204);
    },
  );

  test("1: a delivery signed by the delivery provider's library is taken", async () => {
    const { port } = await listening();
    const body = '{"name":"Wärme & Strom 🔌"}';
    const headers = signedHeaders({ id: 'msg_lib', body }).slice(0, 2);
    const signature = new Webhook(golden.secret).sign('msg_lib', new Date(frozenNow), body);
    const answer = await exchange(port, { headers: [...headers, ['webhook-signature', signature]], body });
    expect(answer.status).toBe(204);
  });

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
    '%s: %s is refused before a byte of the body is sent, and the socket ends',
    async (_row, _what, headers, status) => {
      const { port } = await listening();
      const connection = await RawConnection.open(port);
      connection.write(requestBytes({ headers: [...headers, ['content-length', '1000000']] }));
      expect(await connection.answer()).toMatchObject({ status, headers: { connection: 'close' } });
      await connection.closed;
    },
  );

  test.each([
    ['2', 'webhook-id'],
    ['3', 'webhook-timestamp'],
    ['4', 'webhook-signature'],
  ])('%s: a delivery without %s is not verified', async (_row, missing) => {
    const { port, receiver } = await listening();
    const headers = signedHeaders().filter(([name]) => name !== missing);
    expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    expect(receiver.counters['headers-missing']).toBe(1);
  });

  test('5: an id of one family with a signature of another is not verified', async () => {
    const { port, receiver } = await listening();
    const [id, timestamp, signature] = signedHeaders();
    const [svixId] = signedHeaders({}, 'svix');
    const mixed = [svixId, timestamp, signature] as [string, string][];
    expect(await exchange(port, { headers: mixed, body: golden.body })).toMatchObject(unverified);
    const stray = [id, timestamp, signature, svixId] as [string, string][];
    expect(await exchange(port, { headers: stray, body: golden.body })).toMatchObject(unverified);
    expect(receiver.counters['headers-mixed']).toBe(2);
  });

  test('6: two complete families are not verified', async () => {
    const { port } = await listening();
    for (const id of ['msg_other', golden.id]) {
      const headers = [...signedHeaders(), ...signedHeaders({ id }, 'svix')];
      expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    }
  });

  test.each([0, 1, 2])('7: signature header %i twice is not verified', async (index) => {
    const { port, receiver } = await listening();
    const headers = signedHeaders({}, 'svix');
    headers.push([headers[index]?.[0].toUpperCase() as string, headers[index]?.[1] as string]);
    expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    expect(receiver.counters['header-repeated']).toBe(1);
  });

  test('8: an id with a dot, which separates the signed parts, is not verified', async () => {
    const { port, receiver } = await listening();
    const honest = { id: 'msg_1', body: `${golden.timestamp}.{}` };
    const shifted = [
      ['webhook-id', `msg_1.${golden.timestamp}`],
      ['webhook-timestamp', golden.timestamp],
      ['webhook-signature', signatureOf(honest)],
    ] as const;
    expect(macOf(honest)).toEqual(macOf({ id: `msg_1.${golden.timestamp}`, body: '{}' }));
    expect(await exchange(port, { headers: shifted, body: '{}' })).toMatchObject(unverified);
    expect(receiver.counters['id-malformed']).toBe(1);
  });

  test.each([
    ['of 201 characters', 'm'.repeat(201)],
    ['of 10 kB', 'm'.repeat(10_000)],
    ['that is empty', ''],
    ['with a space', 'msg 1'],
    ['outside ASCII', 'msg_\u00e4'],
  ])('9: an id %s is not verified', async (_what, id) => {
    const { deliver, receiver } = await listening();
    expect(await deliver({ id })).toMatchObject(unverified);
    expect(receiver.counters['id-malformed']).toBe(1);
  });

  test('9: an id with a control byte is not HTTP', async () => {
    const { deliver } = await listening();
    expect((await deliver({ id: 'msg_\u0001' })).status).toBe(400);
  });

  test('9: an id of 200 printable characters is taken', async () => {
    const { deliver } = await listening();
    expect((await deliver({ id: '!"/~'.repeat(50) })).status).toBe(204);
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
  ])('%s: timestamp %s is not verified, though it is signed', async (_row, timestamp) => {
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
  ])('%s: a delivery signed %i s from now is answered %i', async (_row, offset, status) => {
    const { deliver } = await listening();
    expect((await deliver({ timestamp: seconds(offset) })).status).toBe(status);
  });

  test('17: a signature for another timestamp or id is not verified', async () => {
    const { port, receiver } = await listening();
    const [id, timestamp, signature] = signedHeaders() as [
      [string, string],
      [string, string],
      [string, string],
    ];
    for (const headers of [
      [id, [timestamp[0], seconds(1)] as const, signature],
      [[id[0], `${id[1]}x`] as const, timestamp, signature],
    ]) {
      expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    }
    expect(receiver.counters['signature-wrong']).toBe(2);
  });

  test('24: the beginning of a signature is not verified', async () => {
    const { port } = await listening();
    for (const length of [3, 8, 11, 20, 46]) {
      const headers = signedHeaders();
      headers[2] = ['webhook-signature', signatureOf({}).slice(0, length)];
      expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    }
  });

  const mac = macOf({});
  const base64 = mac.toString('base64');
  test.each([
    ['25', 'v1,'],
    ['25', 'v1'],
    ['25', ''],
    ['25', ','],
    ['25', `,${base64}`],
    ['25', `v1,${base64},extra`],
    ['25', base64],
    ['26', `v0,${base64}`],
    ['26', `v2,${base64}`],
    ['26', `V1,${base64}`],
    ['27', `v1a,${base64}`],
    ['29', `v1,${mac.toString('hex')}`],
    ['29', `v1,${Buffer.alloc(32, 0xff).toString('base64url')}=`],
    ['29', `v1,${base64.slice(0, -1)}`],
    ['29', `v1,${base64.slice(0, 20)}\t${base64.slice(20)}`],
    ['29', `v1,${base64.slice(0, -2)}F=`],
  ])('%s: the signature header "%s" is not verified', async (_row, signature) => {
    const { port, receiver } = await listening();
    const headers = signedHeaders();
    headers[2] = ['webhook-signature', signature];
    expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    expect(receiver.counters['signature-malformed']).toBe(1);
  });

  test('28: the bytes of a public key sign nothing', async () => {
    const { deliver, port } = await listening();
    const publicKey = Buffer.alloc(32, 3);
    expect(() => fixedSecrets([`whpk_${publicKey.toString('base64')}`])).toThrow('secret 1');
    expect(await deliver({ key: publicKey })).toMatchObject(unverified);
    const headers = signedHeaders();
    headers[2] = [
      'webhook-signature',
      `v1a,${Buffer.alloc(64, 1).toString('base64')} ${signatureOf({ key: publicKey })}`,
    ];
    expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
  });

  test('30: both the new and the old secret verify while both are configured', async () => {
    const { deliver } = await listening({ secrets: fixedSecrets([golden.secret, oldSecret]) });
    expect((await deliver()).status).toBe(204);
    expect((await deliver({ key: keyOf(oldSecret) })).status).toBe(204);
  });

  test('31: an old secret that is no longer configured does not verify', async () => {
    let source = fixedSecrets([golden.secret, oldSecret]);
    const { deliver } = await listening({ secrets: () => source() });
    source = fixedSecrets([golden.secret]);
    expect(await deliver({ key: keyOf(oldSecret) })).toMatchObject(unverified);
  });

  const wrongSignatures = (count: number) =>
    Array.from({ length: count }, (_, n) => signatureOf({ key: Buffer.alloc(24, n + 100) }));

  test('32: the last of eleven signatures verifies', async () => {
    const { port } = await listening();
    const headers = signedHeaders();
    headers[2] = ['webhook-signature', [...wrongSignatures(10), golden.signature].join(' ')];
    expect((await exchange(port, { headers, body: golden.body })).status).toBe(204);
  });

  test('33: more than sixteen signatures are refused, wherever the right one is', async () => {
    const { port, receiver } = await listening();
    for (const signatures of [
      [golden.signature, ...wrongSignatures(16)],
      [golden.signature, ...wrongSignatures(240)],
    ]) {
      const headers = signedHeaders();
      headers[2] = ['webhook-signature', signatures.join(' ')];
      expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
    }
    expect(receiver.counters['signatures-too-many']).toBe(2);
  });

  test('34: a header block of more than 16 kB is answered 431 and ends the socket', async () => {
    const { port, receiver } = await listening();
    const headers = [...signedHeaders(), ['x-much', 'x'.repeat(16_500)] as [string, string]];
    const answer = await exchange(port, { headers, body: golden.body });
    expect(answer).toMatchObject({ status: 431, headers: { connection: 'close' } });
    expect(receiver.counters['headers-too-large']).toBe(1);
    const tighter = await listening({ limits: { headerBytesMax: 4_096 } });
    const longHeaders = [...signedHeaders(), ['x-much', 'x'.repeat(4_096)] as [string, string]];
    expect((await exchange(tighter.port, { headers: longHeaders, body: golden.body })).status).toBe(431);
  });

  test('35: a request signed with the empty key is not verified', async () => {
    const { port } = await listening();
    const empty = createHmac('sha256', '').update(`${golden.id}.${golden.timestamp}.${golden.body}`);
    const headers = signedHeaders();
    headers[2] = ['webhook-signature', `v1,${empty.digest('base64')}`];
    expect(await exchange(port, { headers, body: golden.body })).toMatchObject(unverified);
  });

  test('36: the secret of another endpoint does not verify', async () => {
    const { deliver } = await listening();
    expect(await deliver({ key: keyOf(otherSecret) })).toMatchObject(unverified);
  });
});
