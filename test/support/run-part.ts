import { pino } from 'pino';
import type { Running } from '../../app/process/running.ts';
import { secretsOf, startReceiver } from '../../app/receiver-part.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { installRuntime } from '../../app/temporal/native.ts';
import { startWorker } from '../../app/worker-part.ts';
import { healthOf } from '../../operations/health.ts';

export type Part = 'worker' | 'receiver';

const log = pino({ level: 'silent' });

let installed = false;

/** Gives Temporal's native library its options, which it accepts only once in a process. */
export function installOnce(): void {
  if (!installed) installRuntime(log);
  installed = true;
}

/**
 * Runs a part in this process like `metersync worker` and `receiver`, which saves two seconds of processor
 * time. The servers have to exist, and the warehouse has to be migrated.
 */
export async function runPart(part: Part, env: Readonly<Record<string, string>>): Promise<Running> {
  const settings = readSettings(env);
  const temporal = {
    address: env.TEMPORAL_ADDRESS,
    namespace: env.TEMPORAL_NAMESPACE,
    codecKeys: settings.temporalCodecKeys,
    plaintext: settings.temporalPlaintext,
  };
  if (part === 'receiver') {
    const secrets = secretsOf(settings.webhooks, log);
    return await startReceiver({ settings, secrets, temporal, temporalWait: { isThere: () => true }, log });
  }
  installOnce();
  const { url = '', apiKey = '' } = settings.service;
  const databaseUrl = settings.databaseUrl ?? '';
  const readHealth = healthOf({ settings, databaseUrl, temporal });
  return await startWorker({ settings, service: { url, apiKey }, databaseUrl, temporal, readHealth, log });
}
