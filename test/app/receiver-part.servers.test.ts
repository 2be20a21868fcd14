import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { expect, inject, onTestFinished, test } from 'vitest';
import { connectionsMaxFor, startReceiver } from '../../app/receiver-part.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { fixedSecrets } from '../../receiver/secrets.ts';
import type { Start } from '../../receiver/starts.ts';
import { signedHeaders } from '../receiver/signing.ts';
import { until } from '../support/poll.ts';

const key = randomBytes(24);

async function receive(namespace: string, startHere?: () => Start): Promise<URL> {
  const { url, stop } = await startReceiver({
    settings: { ...readSettings({}), receiver: { host: '127.0.0.1', port: 0 } },
    secrets: fixedSecrets([`whsec_${key.toString('base64')}`]),
    temporal: { address: inject('temporalAddress'), namespace },
    // As if Temporal had answered when the receiver started.
    temporalWait: { isThere: () => true },
    log: pino({ level: 'silent' }),
    ...(startHere === undefined ? {} : { startHere }),
  });
  onTestFinished(stop);
  return new URL(url);
}

const readiness = async (url: URL): Promise<number> => (await fetch(new URL('/readyz', url))).status;

async function deliver(url: URL, id: string): Promise<number> {
  const body = '{"eventType":"of nobody"}';
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const headers = signedHeaders({ id, timestamp, body, key });
  return (await fetch(url, { method: 'POST', headers: Object.fromEntries(headers), body })).status;
}

test('a receiver is not ready if Temporal no longer lets it into its namespace', async () => {
  const urls = await Promise.all(['default', 'nowhere'].map((namespace) => receive(namespace)));
  expect(await Promise.all(urls.map(readiness))).toEqual([200, 503]);
});

test('a receiver is not ready while starts fail even though Temporal answers, and is ready again after a start', async () => {
  let full = true;
  const start: Start = () =>
    full ? Promise.reject(new Error('13 INTERNAL: database or disk is full')) : Promise.resolve();
  const url = await receive('default', () => start);
  expect(await readiness(url)).toBe(200);
  const givenBack = deliver(url, 'msg_1');
  await until('the receiver is not ready', async () => (await readiness(url)) === 503);
  expect(await givenBack).toBe(503);
  full = false;
  expect(await deliver(url, 'msg_2')).toBe(204);
  await until('the receiver is ready', async () => (await readiness(url)) === 200);
});

test.each([
  [1_024, 512],
  [4_096, 2_048],
  [16_383, 8_191],
  [16_384, 8_192],
  [Number.POSITIVE_INFINITY, 8_192],
])('with %d open files a receiver accepts %d connections', (filesMax, connectionsMax) => {
  expect(connectionsMaxFor(filesMax)).toBe(connectionsMax);
});
