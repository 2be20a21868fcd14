import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { startReceiver } from '../../app/receiver-part.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { readRefused } from '../../db/watch/refused.ts';
import { fixedSecrets } from '../../receiver/secrets.ts';
import { signedHeaders } from '../receiver/signing.ts';
import { runCommand } from '../support/command.ts';
import { deliver } from '../support/deliver.ts';
import { createDeployment } from '../support/deployment.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';

const deployment = await forFile(
  createDeployment({
    env: {
      SERVICE_URL: 'http://127.0.0.1:9/v2.2',
      SERVICE_API_KEY: 'key',
      WEBHOOK_SECRETS: `whsec_${randomBytes(24).toString('base64')}`,
      RECEIVER_PORT: String(await freePort()),
    },
  }),
);
await deployment.run('worker');

/** Starts a receiver in this process, beside the worker. */
async function startOwn(refusedEveryMs?: number): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = deployment.env;
  const settings = readSettings(deployment.env);
  return await startReceiver({
    settings,
    secrets: fixedSecrets(settings.webhooks.secrets),
    temporal: { address, namespace },
    temporalWait: { isThere: () => true },
    ...(refusedEveryMs === undefined ? {} : { refusedEveryMs }),
    log: pino({ level: 'silent' }),
  });
}

/** Sends a delivery with a wrong signature, which has to be refused. */
async function sendForged(url: string, id: string): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const headers = signedHeaders({ id, timestamp, body: '{}', key: randomBytes(24) });
  const refused = await fetch(url, { method: 'POST', headers: Object.fromEntries(headers), body: '{}' });
  expect(refused.status).toBe(401);
}

test('a wrong secret makes the status Broken until a delivery is accepted, and is then not forgotten', async () => {
  const { env } = deployment;
  const { url, stop } = await startOwn(1_000);
  try {
    for (const id of ['msg_1', 'msg_2']) await sendForged(url, id);
    // Requests of a stranger have no signature, and do not count.
    for (let sent = 0; sent < 3; sent += 1)
      expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401);
    const status = async () => (await runCommand(['status'], { env })).stdout;
    await until(
      'status says it',
      async () =>
        /^Broken: deliveries arrive, but none has a valid signature[\s\S]*signatures: all \d+ deliveries since .* were refused: wrong signature$/m.test(
          await status(),
        ),
      { timeoutMs: 60_000 },
    );
    expect((await deliver(deployment, { eventType: 'something.else.v2' })).status).toBe(204);
    await until('the delivery ends it', async () => !(await status()).includes('signatures:'), {
      timeoutMs: 60_000,
    });
    // On a busy machine the activity that counts them is tried again, and counts them again.
    expect(await status()).toMatch(
      /^ {2}Catching up: refused deliveries: \d+ deliveries were refused, the last/m,
    );
  } finally {
    await stop();
  }
});

test('a receiver that stops reports what it refused since its last report', async () => {
  const refused = async () => (await readRefused(deployment.warehouse.db))?.unread ?? 0;
  const before = await refused();
  const { url, stop } = await startOwn();
  await sendForged(url, 'msg_3').finally(stop);
  await until('the worker notes it', async () => (await refused()) === before + 1, { timeoutMs: 60_000 });
});
