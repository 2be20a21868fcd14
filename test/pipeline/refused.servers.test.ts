import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { startReceiver } from '../../app/receiver-part.ts';
import { readSettings } from '../../app/settings/settings.ts';
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

test('a wrong secret makes the status Broken, even without Prometheus, until a delivery is accepted', async () => {
  const { env } = deployment;
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = env;
  const settings = readSettings(env);
  const { stop } = await startReceiver({
    settings,
    secrets: fixedSecrets(settings.webhooks.secrets),
    temporal: { address, namespace },
    temporalWait: { isThere: () => true },
    refusedEveryMs: 1_000,
    log: pino({ level: 'silent' }),
  });
  try {
    const url = `http://127.0.0.1:${env.RECEIVER_PORT}/webhooks`;
    const timestamp = String(Math.floor(Date.now() / 1_000));
    for (const id of ['msg_1', 'msg_2']) {
      const headers = signedHeaders({ id, timestamp, body: '{}', key: randomBytes(24) });
      const refused = await fetch(url, { method: 'POST', headers: Object.fromEntries(headers), body: '{}' });
      expect(refused.status).toBe(401);
    }
    // Requests of a stranger have no signature, and do not count.
    for (let sent = 0; sent < 3; sent += 1)
      expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401);
    const status = async () => (await runCommand(['status'], { env })).stdout;
    await until(
      'status says it',
      async () =>
        /^Broken: all deliveries are refused[\s\S]*signatures: all 2 deliveries since .*: wrong signature$/m.test(
          await status(),
        ),
      { timeoutMs: 60_000 },
    );
    expect((await deliver(deployment, { eventType: 'something.else.v2' })).status).toBe(204);
    await until('the delivery ends it', async () => !(await status()).includes('signatures:'), {
      timeoutMs: 60_000,
    });
  } finally {
    await stop();
  }
});
