import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openService } from '../../app/service.ts';
import { readSettings, SettingsError } from '../../app/settings/settings.ts';
import { insecureAmong, requireSafeTransport, temporalAt } from '../../app/settings/transport.ts';
import { makeCertificate } from '../support/certificate.ts';
import { runCommand } from '../support/command.ts';
import { startCommand } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { startHttpProxy } from '../support/http-proxy.ts';

const folder = await forFile(temporaryFolder());
const ours = await makeCertificate(folder.path, 'ours', 'DNS:localhost,IP:127.0.0.1');

const log = pino({ level: 'silent' });
const service = { SERVICE_API_KEY: 'key-1' };
const everything = { postgres: true, service: true, temporal: false };
const settingsIn = (env: Readonly<Record<string, string>>) =>
  requireSafeTransport(readSettings({ ...service, ...env }), everything).map(({ setting }) => setting);

test('a target of alarms on another machine needs TLS, and is named without its secrets', () => {
  const judge = (url: string, beat: string) =>
    requireSafeTransport(readSettings({ ...service, NOTIFY_URL: url, HEARTBEAT_URL: beat }), everything);
  expect(judge('slack+https://hooks.example/a', 'http://127.0.0.1/beat')).toEqual([]);
  const unsafe = judge('slack+http://hooks.example/xyz', 'http://hc.example/xyz');
  expect(unsafe.map(({ setting }) => setting)).toEqual(['NOTIFY_URL', 'HEARTBEAT_URL']);
  expect(JSON.stringify(unsafe)).not.toContain('xyz');
});

describe('a warehouse', () => {
  const at = (rest: string) => settingsIn({ DATABASE_URL: `postgres://u:p@${rest}` });

  test.each([
    // On this machine.
    'localhost/w',
    '127.0.0.1/w',
    '[::1]/w',
    '[::ffff:127.0.0.1]/w',
    'h/w?host=/var/run/postgresql',
    'db.example/w?host=127.0.0.1',
    'localhost/w?sslmode=disable',
    // Elsewhere, with a proof of its identity. The driver currently verifies the same for these modes.
    'db.example/w?sslmode=verify-full',
    'db.example/w?ssl=true',
    '10.0.0.7/w?sslmode=verify-full',
    'db.example/w?sslmode=require',
    'db.example/w?sslmode=verify-ca',
    'db.example/w?sslnegotiation=direct',
  ])('is safe at %s', (rest) => {
    expect(at(rest)).toEqual([]);
  });

  test.each([
    'db.example/w',
    'db.example/w?sslmode=disable',
    '10.0.0.7/w',
    '[fd00::5]/w',
    '0.0.0.0/w',
    '127.0.0.1.example/w',
    'localhost/w?host=db.example',
    'db.example/w?sslmode=no-verify',
    'db.example/w?sslmode=require&uselibpqcompat=true',
  ])('is reported at %s', (rest) => {
    expect(at(rest)).toEqual(['DATABASE_URL']);
  });

  test('is reported if its CA is trusted but its name is not checked', () => {
    const more = `sslrootcert=${ours.file}&uselibpqcompat=true`;
    expect(at(`db.example/w?sslmode=verify-ca&${more}`)).toEqual(['DATABASE_URL']);
    expect(at(`db.example/w?sslmode=verify-full&${more}`)).toEqual([]);
  });

  test('is a wrong setting if its CA file is missing, and the error does not have the password', () => {
    const url = 'postgres://u:geheim@db.example/w?sslmode=verify-full&sslrootcert=/nowhere/ca.pem';
    const asked = () => requireSafeTransport(readSettings({ DATABASE_URL: url }), everything);
    expect(asked).toThrow(SettingsError);
    expect(asked).toThrow(/DATABASE_URL cannot be used: .*\/nowhere\/ca\.pem/);
    expect(asked).not.toThrow(/geheim/);
  });
});

describe('service and Temporal', () => {
  test.each([
    ['http://127.0.0.1:4000/v2', []],
    ['http://[::1]:4000/v2', []],
    ['https://service.example/v2', []],
    ['http://service.example/v2', ['SERVICE_URL']],
    ['http://127.0.0.1.service.example/v2', ['SERVICE_URL']],
  ])('the service at %s: %j', (url, settings) => {
    expect(settingsIn({ SERVICE_URL: url })).toEqual(settings);
  });

  test.each([
    [undefined, false, []],
    ['localhost:7233', false, []],
    ['[::1]:7233', false, []],
    ['temporal.example:7233', true, []],
    ['temporal.example:7233', false, ['TEMPORAL_ADDRESS']],
    ['temporal', false, ['TEMPORAL_ADDRESS']],
    ['dns:///temporal.example:7233', false, ['TEMPORAL_ADDRESS']],
  ])('Temporal at %s, with TLS %s: %j', (address, tls, settings) => {
    const judged = insecureAmong([temporalAt(address, tls)], readSettings({}));
    expect(judged.map(({ setting }) => setting)).toEqual(settings);
  });
});

describe('the settings', () => {
  const open = {
    DATABASE_URL: 'postgres://u:geheim@db.example/w',
    SERVICE_URL: 'http://service.example/v2',
  };

  test('report for each connection what can happen and what to do', () => {
    const judged = requireSafeTransport(readSettings({ ...service, ...open }), everything);
    expect(judged.map(({ setting }) => setting)).toEqual(['DATABASE_URL', 'SERVICE_URL']);
    for (const { saw, todo } of judged) {
      expect(saw).toMatch(/without TLS/);
      expect(saw).not.toMatch(/geheim|key-1/);
      expect(todo).toMatch(/verify-full|https/);
    }
  });

  test('refuse all unsafe connections at once with STRICT_TLS', () => {
    const strict = readSettings({ ...service, ...open, STRICT_TLS: 'on' });
    const refused = () => requireSafeTransport(strict, everything);
    expect(refused).toThrow(SettingsError);
    expect(refused).toThrow(/DATABASE_URL leads to db\.example.*\n.*SERVICE_URL leads to service\.example/);
  });

  test('judge only the servers to which a command connects', () => {
    const strict = readSettings({ ...service, ...open, STRICT_TLS: 'on' });
    expect(requireSafeTransport(strict, { postgres: false, service: false, temporal: false })).toEqual([]);
  });

  test('leave Postgres and Temporal to the operator with STRICT_TLS=outside, and refuse other unsafe connections', () => {
    const env = { ...service, ...open, TEMPORAL_ADDRESS: 'temporal.example:7233', STRICT_TLS: 'outside' };
    const judge = (more: Readonly<Record<string, string>>) =>
      requireSafeTransport(readSettings({ ...env, ...more }), { ...everything, temporal: true });
    expect(judge({ SERVICE_URL: 'https://service.example/v2' })).toEqual([]);
    expect(() => judge({})).toThrow(
      /^Wrong settings:\n {2}SERVICE_URL leads to service\.example[^\n]+, and STRICT_TLS is outside\. [^\n]+$/,
    );
  });

  test('report that they accept any certificate, if a server is elsewhere', () => {
    const env = { SERVICE_URL: 'https://service.example/v2', NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    expect(settingsIn(env)).toEqual(['NODE_TLS_REJECT_UNAUTHORIZED']);
    expect(settingsIn({ ...env, SERVICE_URL: 'http://localhost/v2' })).toEqual([]);
    expect(() => settingsIn({ ...env, STRICT_TLS: 'on' })).toThrow('any certificate is accepted');
  });
});

/** Starts a server on loopback. URLs name it as 0.0.0.0, which is not a loopback address but leads there. */
async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  });
  return (server.address() as AddressInfo).port;
}

const sslRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/** Starts a server in the place of Postgres that has no TLS and asks for the password in clear text. */
async function falsePostgres() {
  const heard: Buffer[] = [];
  const port = await listen(
    createServer((socket) => {
      socket.on('data', (data) => {
        heard.push(data);
        if (data.equals(sslRequest)) socket.write('N');
        else if (data[0] === 'p'.charCodeAt(0)) socket.destroy();
        else socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]));
      });
    }),
  );
  return { port, heard: () => Buffer.concat(heard).toString('latin1') };
}

describe('a false Postgres', () => {
  const urlOf = (port: number, rest = '') =>
    `postgres://metersync:WAREHOUSE-PASSWORD@0.0.0.0:${port}/warehouse${rest}`;

  test('is reported before it gets the password', async () => {
    const { port, heard } = await falsePostgres();
    const { status, stderr } = await runCommand(['migrate'], { env: { DATABASE_URL: urlOf(port) } });
    expect(status).toBe(1);
    expect(heard()).toContain('WAREHOUSE-PASSWORD');
    expect(stderr).toMatch(/^Warning: DATABASE_URL leads to 0\.0\.0\.0 without TLS: .*sslmode=verify-full/);
    expect(stderr).not.toContain('WAREHOUSE-PASSWORD');
  });

  test.each([
    ['migrate', ''],
    ['status', ''],
    ['migrate', '?sslmode=no-verify'],
  ])('receives nothing from metersync %s with %j if STRICT_TLS is on', async (command, rest) => {
    const { port, heard } = await falsePostgres();
    const env = { DATABASE_URL: urlOf(port, rest), STRICT_TLS: 'on', METERSYNC_DIR: folder.path };
    const { status, stdout, stderr } = await runCommand([command], { env });
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain('DATABASE_URL');
    expect(stderr).toContain('STRICT_TLS is on');
    expect(stderr).not.toContain('WAREHOUSE-PASSWORD');
    expect(heard()).toBe('');
  });

  test('gets no password if it has no TLS and sslmode asks for TLS', async () => {
    const { port, heard } = await falsePostgres();
    const env = { DATABASE_URL: urlOf(port, '?sslmode=verify-full'), STRICT_TLS: 'on' };
    const { status, stderr } = await runCommand(['migrate'], { env });
    expect(status).toBe(1);
    expect(stderr).toContain('does not support SSL');
    expect(heard().replaceAll(sslRequest.toString('latin1'), '')).toBe('');
  });
});

test('a service with an unknown certificate gets no request and no key', async () => {
  let requests = 0;
  const server = createHttpsServer({ cert: ours.cert, key: ours.key }, (_request, response) => {
    requests += 1;
    response.end('{}');
  });
  const port = await listen(server);
  const patience = { budget: { attemptsMax: 1, waitMaxMs: 0 }, timeoutMs: 15_000 };
  const url = `https://localhost:${port}/v2.2`;
  const { client } = openService(readSettings({}), url, 'the-key', log, patience);
  onTestFinished(() => client.close());
  await expect(client.ping()).rejects.toThrow(/self-signed|certificate/i);
  expect(requests).toBe(0);
});

test('verifies the certificate of the service through a proxy, and sends no key without it', async () => {
  const { cert, key, file } = await makeCertificate(folder.path, 'service', 'DNS:service.example');
  const keys: unknown[] = [];
  const server = createHttpsServer({ cert, key }, ({ headers }, response) => {
    keys.push(headers['x-api-key']);
    response.end('{"enabled": true}');
  });
  const proxy = await startHttpProxy({ 'service.example': await listen(server) });
  onTestFinished(() => proxy.stop());
  const env = {
    SERVICE_URL: 'https://service.example/v2.2',
    SERVICE_API_KEY: 'the-key',
    METERSYNC_DIR: folder.path,
    https_proxy: `http://${proxy.host}`,
  };
  const ask = async (more: Readonly<Record<string, string>>) => {
    const command = startCommand(['webhooks', 'enable'], { env: { ...env, ...more } });
    const { status } = await command.ended;
    return { status, stdout: command.stdout(), stderr: command.stderr() };
  };
  expect(await ask({})).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('self-signed certificate'),
  });
  expect(keys).toEqual([]);
  const asked = await ask({ NODE_EXTRA_CA_CERTS: file });
  expect(asked).toMatchObject({ status: 0, stdout: expect.stringContaining('enabled'), stderr: '' });
  expect(keys).toEqual(['the-key']);
  expect(new Set(proxy.asked.map(({ line }) => line))).toEqual(new Set(['CONNECT service.example:443']));
});

describe('a plain Temporal elsewhere', () => {
  /** Starts a server; returns the bytes that it receives, and a promise of the first bytes. */
  const server = async () => {
    const heard: Buffer[] = [];
    const first = Promise.withResolvers<Buffer>();
    const port = await listen(
      createServer((socket) => {
        socket.on('data', (data) => {
          heard.push(data);
          first.resolve(data);
        });
      }),
    );
    return { TEMPORAL_ADDRESS: `0.0.0.0:${port}`, heard: () => Buffer.concat(heard), first: first.promise };
  };
  const receiving = {
    WEBHOOK_SECRETS: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
    RECEIVER_PORT: '0',
  };

  test('receives nothing if STRICT_TLS is on', async () => {
    const { TEMPORAL_ADDRESS, heard } = await server();
    const env = { ...receiving, TEMPORAL_ADDRESS, STRICT_TLS: 'on', METERSYNC_DIR: folder.path };
    const { status, stderr } = await runCommand(['receiver'], { env });
    expect(status).toBe(2);
    expect(stderr).toContain('TEMPORAL_ADDRESS leads to 0.0.0.0');
    expect(heard()).toHaveLength(0);
  });

  test('gets a TLS handshake first if there is an API key', async () => {
    const { TEMPORAL_ADDRESS, heard, first } = await server();
    const env = { ...receiving, TEMPORAL_API_KEY: 'temporal-key', TEMPORAL_ADDRESS, STRICT_TLS: 'on' };
    const receiver = startCommand(['receiver'], { env });
    onTestFinished(async () => void (await receiver.end('SIGKILL')));
    // The first byte of a TLS handshake record.
    expect((await first)[0]).toBe(0x16);
    expect(heard().toString('latin1')).not.toContain('temporal-key');
  });
});
