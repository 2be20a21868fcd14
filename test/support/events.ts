import { randomUUID } from 'node:crypto';
import type { DeliveredEvent } from '../../contract/event.ts';

/** Payloads of the service's events (service.md 2.4 to 2.6), for tests that need exact ones. */
export const company = { externalId: 'acme', id: randomUUID(), name: 'Acme', publicId: randomUUID() };
export const site = { id: randomUUID(), name: 'Main street' };

export function delivery(payload: unknown, id: string = randomUUID()): DeliveredEvent {
  const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
  return { id, timestamp: 1_700_000_000, receivedAt: '2026-01-01T00:00:00.000Z', body };
}

export function documentEvent(
  type: 'created' | 'updated' | 'deleted',
  id: string,
  updated: string,
  more: object = {},
) {
  return {
    eventType: `document.${type}.v2`,
    id,
    company,
    site,
    created: '2026-01-01T00:00:00.000001',
    updated,
    ...(type === 'updated' ? { old: { updated: '2026-01-01T00:00:00.000001' } } : {}),
    ...more,
  };
}

export function connectionEvent(
  type: 'created' | 'updated' | 'validated',
  id: string,
  updated: string,
  status: string,
  old?: string,
) {
  return {
    company,
    created: '2026-01-01T00:00:00.000001',
    datasource: { name: 'City Power' },
    externalId: 'c-1',
    id,
    sitesRelations: [{ accountIds: ['a1'], datasourceTypes: ['ELECTRICITY'], site }],
    status,
    updated,
    url: 'https://power.example',
    ...(type === 'created'
      ? {}
      : {
          eventType: `connection.${type}.v2`,
          protectedChanges: ['status'],
          old: old === undefined ? {} : { status: old },
        }),
  };
}

export function intervalsEvent(meterId: string, start: string, end: string, count: number) {
  return {
    meterId,
    start,
    end,
    intervalCount: count,
    createdCount: count,
    updatedCount: 0,
    companyExternalId: company.externalId,
    accountNumber: null,
    granularitySeconds: [900],
    usageUnits: ['kWh'],
    qualities: ['MEASURED'],
  };
}
