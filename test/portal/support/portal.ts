import type { Page } from 'playwright-core';
import { type Service, startService } from '../../sandbox/support/service.ts';

/** A sandbox with webhooks enabled, and the way into its portal. */
export interface Portal {
  readonly service: Service;
  /** Makes a new link, as `POST /external/configure_webhook` returns it to the key's organization. */
  link(key?: string): Promise<string>;
  /** Opens the portal with the link, as a person does. */
  open(page: Page, link?: string): Promise<void>;
  /** Adds an endpoint through the control routes; returns its id and secret. */
  endpoint(url: string, eventTypes?: readonly string[]): Promise<{ id: string; secret: string }>;
  /** Advances the service's clock. */
  advance(seconds: number): Promise<void>;
  deliveries(): Promise<Delivery[]>;
  stop(): Promise<void>;
}

export interface Delivery {
  readonly id: number;
  readonly eventId: string;
  readonly type: string;
  readonly endpointId: string;
  readonly state: string;
  readonly attempts: number;
  readonly dueAt: string;
}

export async function startPortal(
  options: Parameters<typeof startService>[0] = { companies: 1, documents: 6, intervalDays: 1 },
): Promise<Portal> {
  const service = await startService(options);
  await service.enableWebhooks();
  const link = async (key?: string) => {
    const init = key === undefined ? {} : { key };
    const path = '/external/configure_webhook';
    return (await service.api<{ url: string }>(path, { method: 'POST', ...init })).body.url;
  };
  return {
    service,
    link,
    open: async (page, known) => {
      await page.goto(known ?? (await link()));
      await page.waitForURL(/\/portal\/o\/\w+\/endpoints$/);
    },
    endpoint: (url, eventTypes = []) =>
      service.control('POST', '/sandbox/endpoints', { url, eventTypes: [...eventTypes] }),
    advance: async (seconds) => {
      await service.control('POST', '/sandbox/clock', { advanceSeconds: seconds });
    },
    deliveries: async () =>
      (await service.control<{ deliveries: Delivery[] }>('GET', '/sandbox/deliveries?limit=10000'))
        .deliveries,
    stop: () => service.stop(),
  };
}
