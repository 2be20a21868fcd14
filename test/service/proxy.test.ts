import { type Dispatcher, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { throughProxies } from '../../service/proxy.ts';
import { type HttpProxy, startHttpProxy } from '../support/http-proxy.ts';
import { pageOf, someDocuments } from './listing.ts';
import { apiKey, documents, rejection, setup } from './setup.ts';

const once = { attemptsMax: 1, waitMaxMs: 0 };

/** Makes a client of a service that only the proxy knows, with a login for the proxy. */
async function behindProxy(baseUrl: string, login = 'metersync:p%40ss') {
  const ports: Record<string, number> = {};
  const proxy = await startHttpProxy(ports);
  const url = new URL(`http://${login}@${proxy.host}`);
  const made = await setup((asked) => pageOf(someDocuments(1), asked), {
    baseUrl,
    proxies: { https: url, http: url, none: '' },
    budget: once,
  });
  ports['service.example'] = Number(new URL(made.server.url).port);
  onTestFinished(() => proxy.stop());
  return { ...made, proxy };
}
const plain = 'http://service.example/v2.2';
const refusal = async (client: Awaited<ReturnType<typeof behindProxy>>['client']) =>
  (await rejection(client.page(documents()))) as Error & { code: string };

test('a request goes through the proxy, and only the proxy gets its login and resolves the host', async () => {
  const { client, server, proxy } = await behindProxy(plain);
  const { count } = await client.page(documents());
  expect(count).toBe(1);
  const line = `GET ${plain}/document/company/c1?page=1`;
  expect(proxy.asked).toEqual([{ line, login: 'metersync:p@ss' }]);
  const [{ headers } = { headers: {} }] = server.asked;
  expect(headers).toMatchObject({ host: 'service.example', 'x-api-key': apiKey });
});

test('a login without a password, such as a token, reaches the proxy', async () => {
  const { client, proxy } = await behindProxy(plain, 't%40ken');
  await client.page(documents());
  expect(proxy.asked.map(({ login }) => login)).toEqual(['t@ken:']);
});

test.each<[HttpProxy['tunnels'], string]>([
  [403, 'it answered 403'],
  [407, 'it answered 407'],
  [502, 'it answered 502'],
  ['hang up', 'other side closed'],
])('a tunnel that ends in %s is requested once, and the failure names the proxy', async (tunnels, reason) => {
  const { client, proxy } = await behindProxy('https://service.example/v2.2');
  proxy.tunnels = tunnels;
  const { code, message } = await refusal(client);
  expect(code).toBe('SERVICE_UNREACHABLE');
  const named = `no tunnel through the proxy ${proxy.host}: ${reason}`;
  expect(message).toBe(`GET /document/company/c1?page=1: ${named}`);
  expect(proxy.asked.map(({ line }) => line)).toEqual(['CONNECT service.example:443']);
});

test('a request fails if the proxy does not open a tunnel in time', async () => {
  const proxy = await startHttpProxy({});
  const url = new URL(`http://${proxy.host}`);
  const dispatcher = throughProxies({ https: url, http: undefined, none: '' }, 1, 50) as Dispatcher;
  onTestFinished(async () => {
    await dispatcher.destroy();
    await proxy.stop();
  });
  const asked = async () => await rejection(request('https://service.example/ping', { dispatcher }));
  proxy.tunnels = 'silence';
  expect(await asked()).toMatchObject({
    message: `no tunnel through the proxy ${proxy.host}: Headers Timeout Error`,
  });
  proxy.tunnels = 403;
  expect(await asked()).toMatchObject({
    message: `no tunnel through the proxy ${proxy.host}: it answered 403`,
  });
});

test('an unreachable proxy is named, without its password', async () => {
  const { client, proxy } = await behindProxy(plain);
  await proxy.stop();
  const { code, message, stack } = await refusal(client);
  expect({ code, message }).toEqual({
    code: 'SERVICE_UNREACHABLE',
    message: expect.stringContaining(`connect ECONNREFUSED ${proxy.host}`),
  });
  expect(`${message}${stack}`).not.toMatch(/p(@|%40)ss/);
});

test('this machine, and hosts in NO_PROXY, are reached directly', async () => {
  const { client, server, proxy } = await behindProxy(plain);
  await client.page(documents());
  const { port } = new URL(server.url);
  const url = new URL(`http://${proxy.host}`);
  const asked = async (address: string, none = '') => {
    const before = proxy.asked.length;
    const dispatcher = throughProxies({ https: undefined, http: url, none });
    await request(address, dispatcher === undefined ? {} : { dispatcher }).then(
      ({ body }) => body.dump(),
      () => {},
    );
    await dispatcher?.close();
    return proxy.asked.length > before;
  };
  for (const here of [`http://127.0.0.1:${port}/a`, `http://localhost:${port}/a`, `http://[::1]:${port}/a`])
    expect(await asked(here)).toBe(false);
  expect(await asked('http://service.example/a')).toBe(true);
  for (const none of ['service.example', '.example', '*.example', 'other, service.example', '*'])
    expect(await asked('http://service.example/a', none)).toBe(false);
});

test('without proxies there is no way through them', () => {
  expect(throughProxies({ https: undefined, http: undefined, none: '' })).toBeUndefined();
});
