import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startReceiver } from '../../app/receiver-part.ts';
import { readSettings } from '../../app/settings.ts';
import { fixedSecrets } from '../../receiver/secrets.ts';

const readiness = async (namespace: string): Promise<number> => {
  const { url, stop } = await startReceiver({
    settings: { ...readSettings({}), receiver: { host: '127.0.0.1', port: 0 } },
    secrets: fixedSecrets([`whsec_${randomBytes(24).toString('base64')}`]),
    temporal: { address: inject('temporalAddress'), namespace },
    // Temporal was there at the start.
    arrival: { isThere: () => true },
    log: pino({ level: 'silent' }),
  });
  onTestFinished(stop);
  return (await fetch(new URL('/readyz', url))).status;
};

test('a receiver whom Temporal no longer lets into its namespace is not ready', async () => {
  expect([await readiness('default'), await readiness('nowhere')]).toEqual([200, 503]);
});
