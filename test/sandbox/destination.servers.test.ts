import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { allowDestinations, connectorTo } from '../../sandbox/delivery/sender.ts';
import { until } from '../support/poll.ts';
import { type AnyRecord, type Service, startService } from './support/service.ts';

const refused = [
  '169.254.169.254',
  '169.254.170.2',
  'fe80::1',
  'fd00:ec2::254',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '10.0.0.7',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.100.100.200',
  '::ffff:10.0.0.7',
  '224.0.0.1',
  '255.255.255.255',
  '198.18.0.1',
  '203.0.113.5',
  'ff02::1',
  'fec0::1',
  // Addresses that contain another address, to which a gateway would forward.
  '64:ff9b::a9fe:a9fe',
  '2002:a9fe:a9fe::1',
  '2001:0:a9fe:a9fe::1',
];
const allowed = [
  '127.0.0.1',
  '127.8.9.10',
  '::1',
  '::ffff:127.0.0.1',
  '0.0.0.0',
  '::',
  '93.184.215.14',
  '2606:2800:21f::1',
];

test('messages can be sent to this machine, to public addresses and to the named networks', () => {
  const everywhere = [...allowed, ...refused];
  expect(everywhere.filter(allowDestinations())).toEqual(allowed);
  const named = ['172.16.0.0/12', '10.0.0.7', 'fd12::/16'];
  const asked = [
    '172.17.0.2',
    '::ffff:172.17.0.2',
    '10.0.0.7',
    '10.0.0.8',
    'fd12::5',
    'fd13::5',
    '169.254.169.254',
  ];
  expect(asked.filter(allowDestinations(named))).toEqual([
    '172.17.0.2',
    '::ffff:172.17.0.2',
    '10.0.0.7',
    'fd12::5',
  ]);
  for (const network of ['', 'docker', '10.0.0.0/33', '10.0.0.0/8 '])
    expect(() => allowDestinations([network]), network).toThrow('is not a network');
});

describe('a connection', () => {
  const server = createServer((_request, response) => response.end());
  let port: string;
  beforeAll(async () => {
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    port = String((server.address() as AddressInfo).port);
  });
  afterAll(() => new Promise((done) => server.close(done)));

  /** Connects to a name that resolves to the given addresses. */
  function connect(hostname: string, addresses: readonly string[]): Promise<Socket> {
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    const lookup = ((_name: string, _options: object, done: (error: null, found: object) => void) =>
      done(null, found)) as unknown as typeof import('node:dns').lookup;
    const connector = connectorTo(allowDestinations(), lookup);
    return new Promise((done, failed) => {
      connector({ hostname, host: hostname, protocol: 'http:', port }, (error, socket) =>
        error ? failed(error) : done(socket as Socket),
      );
    });
  }

  test('can be made to a name of this machine', async () => {
    const socket = await connect('hooks.example', ['127.0.0.1']);
    expect(socket.remoteAddress).toBe('127.0.0.1');
    socket.destroy();
  });

  test('can be made to the allowed addresses of a name', async () => {
    const socket = await connect('hooks.example', ['169.254.169.254', '10.0.0.7', '127.0.0.1']);
    expect(socket.remoteAddress).toBe('127.0.0.1');
    socket.destroy();
  });

  test.each([
    ['metadata.example', ['169.254.169.254']],
    ['metadata.example', ['fd00:ec2::254', '169.254.169.254']],
    ['169.254.169.254', ['127.0.0.1']],
    ['fe80::1', ['127.0.0.1']],
  ])('is refused to %s at %j', async (name, addresses) => {
    await expect(connect(name, addresses)).rejects.toThrow('neither this machine nor public');
  });
});

describe('the service', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService();
    await service.enableWebhooks();
  });
  afterAll(() => service.stop());

  test.each([
    'http://169.254.169.254/latest/meta-data/',
    'http://[::ffff:169.254.169.254]/',
    'https://[fe80::1]/',
    'http://0xa9fea9fe/',
  ])('sends nothing to %s, and says so in the attempt', async (url) => {
    const endpoint = await service.control<AnyRecord>('POST', '/sandbox/endpoints', { url });
    onTestFinished(async () => {
      await service.control('DELETE', `/sandbox/endpoints/${endpoint.id}`);
    });
    await service.control('POST', '/sandbox/random', { count: 1, types: ['createDocument'] });
    const attempt = await until('an attempt was made', async () => {
      const path = `/sandbox/deliveries?endpointId=${endpoint.id}`;
      const { deliveries } = await service.control<AnyRecord>('GET', path);
      const made = await service.control<AnyRecord>(
        'GET',
        `/sandbox/deliveries/${deliveries[0].id}/attempts`,
      );
      return (made.attempts as AnyRecord[])[0];
    });
    expect(attempt).toMatchObject({ status: null, responseBody: null });
    expect(attempt.error).toContain('neither this machine nor public');
  });
});
