import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createNotifier } from '../../activities/notifier.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { noticeOf } from '../../health/alarms.ts';
import { throughProxies } from '../../service/proxy.ts';
import { startCollector } from '../support/collector.ts';
import { endless } from '../support/endless.ts';
import { type HttpProxy, startHttpProxy } from '../support/http-proxy.ts';

const alarm = { id: 'a-1', name: 'Silent' as const, key: '', detail: 'for 73 h' };
const notice = noticeOf(alarm, { since: '2026-11-23T00:00:00Z', until: null });

/** Makes a notifier as a worker does, with a target and a heartbeat address behind a proxy. */
async function notifying(env: Readonly<Record<string, string>>, proxy: HttpProxy) {
  const { notify, proxies } = readSettings({
    NOTIFY_URL: 'slack+http://hooks.example/T0/B0/xyz',
    HEARTBEAT_URL: 'http://hc.example/beat',
    HTTP_PROXY: `http://metersync:geheim@${proxy.host}`,
    ...env,
  });
  const notifier = createNotifier({ ...notify, dispatcher: throughProxies(proxies), now: Date.now });
  return { send: () => notifier.send(notice), beat: () => notifier.beat() };
}

test('sends alarms and the heartbeat through the proxy, except to hosts in NO_PROXY', async () => {
  const collector = await startCollector();
  const port = Number(new URL(collector.url).port);
  const proxy = await startHttpProxy({ 'hooks.example': port, 'hc.example': port });
  onTestFinished(async () => void (await Promise.all([proxy.stop(), collector.stop()])));
  const { send, beat } = await notifying({}, proxy);
  await send();
  await beat();
  expect(collector.got.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /T0/B0/xyz',
    'GET /beat',
  ]);
  expect(proxy.asked.length).toBe(2);
  const direct = await notifying({ NO_PROXY: '.example' }, proxy);
  await expect(direct.send()).rejects.toThrow(/^it does not answer: getaddrinfo/);
  expect(proxy.asked.length).toBe(2);
});

test('does not quote the password of the proxy or the address in an error', async () => {
  const proxy = await startHttpProxy({});
  const { send } = await notifying({}, proxy);
  await expect(send()).rejects.toThrow('it answered 502');
  await proxy.stop();
  const error = await send().catch((failed: Error) => failed);
  expect(String(error)).toContain(`it does not answer: connect ECONNREFUSED ${proxy.host}`);
  expect(String(error)).not.toMatch(/geheim|xyz/);
});

test('reads little of an endless answer, whatever its status', async () => {
  const server = createServer((request, response) =>
    endless(response, request.method === 'POST' ? 500 : 200),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const notifier = createNotifier({ target: { kind: 'json', url }, heartbeatUrl: url, now: Date.now });
  await expect(notifier.send(notice)).rejects.toThrow(`it answered 500: ${'x'.repeat(200)}`);
  await notifier.beat();
});
