import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createServiceClient, type ServiceClient, type ServiceClientOptions } from '../service/client.ts';
import type { WallClock } from '../service/throttle.ts';
import { type WebhookConfiguration, webhookConfiguration } from '../service/webhooks.ts';
import { readVersion } from './process/version.ts';
import type { Settings } from './settings/settings.ts';

/** A client of the service, and the API version that it reads. */
export interface ServiceAccess {
  readonly client: ServiceClient;
  readonly apiVersion: string;
}

/** A clock that never goes backwards, so that requests do not back off longer when the date is set back. */
const serviceClock: WallClock = {
  now: () => performance.timeOrigin + performance.now(),
  sleep: async (ms, signal) => {
    await wait(ms, undefined, { signal });
  },
};

export function openService(
  { service: settings, proxies }: Pick<Settings, 'service' | 'proxies'>,
  url: string,
  apiKey: string,
  log: Logger,
  more: Pick<ServiceClientOptions, 'budget' | 'timeoutMs' | 'onRequest'> = {},
): ServiceAccess {
  const client = createServiceClient({
    baseUrl: url,
    apiKey,
    proxies,
    endpoints: settings.endpoints,
    maxConcurrency: settings.maxConcurrency,
    ...more,
    clock: serviceClock,
    random: Math.random,
    version: readVersion(),
    log,
  });
  return { client, apiVersion: url.split('/').at(-1) ?? '' };
}

/** The service's switch for webhook events. The sandbox's switch needs no settings. */
export function webhooksOf(
  { url, apiKey }: { url: string; apiKey: string },
  settings?: Pick<Settings, 'proxies'>,
): WebhookConfiguration {
  return webhookConfiguration({ baseUrl: url, apiKey, proxies: settings?.proxies, clock: serviceClock });
}
