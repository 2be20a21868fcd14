import {
  type ConnectionState,
  connectionChangePayload,
  connectionPayload,
  type DocumentState,
  documentPayload,
  type EventType,
  intervalsPayload,
} from '../events/payloads.ts';
import { fromText, secondsToMicros, toText } from '../timestamps.ts';

const company = {
  externalId: 'customer-1042',
  id: '4f6c1a52-9f0e-4f43-9d36-6a4f6f5e2b10',
  name: 'Example Foods Inc.',
  publicId: 'b1d7e0c4-52a7-4c0f-8a53-0f2f7d9c6e21',
};
const site = { id: '7c9e6679-7425-40de-944b-e07fc1f90ae7', name: 'Warehouse North' };

/** Returns a payload of an event type with all fields (service.md 2.4 to 2.6), of invented records. */
export function examplePayload(type: EventType, now: string): object {
  switch (type) {
    case 'connection.created.v2':
      return connectionPayload(connection('PENDING', now, now));
    case 'connection.updated.v2':
    case 'connection.validated.v2':
      return connectionChangePayload(type, connection('CONNECTED', daysBefore(now, 1), now), ['status'], {
        status: 'PENDING',
      });
    case 'document.created.v2':
      return documentPayload(type, document(now, now));
    case 'document.updated.v2':
      return documentPayload(type, document(daysBefore(now, 30), now), { updated: daysBefore(now, 30) });
    case 'document.deleted.v2':
      return documentPayload(type, document(daysBefore(now, 30), now));
    case 'intervals.synced':
      return intervalsPayload(sync(now));
  }
}

const connection = (status: string, created: string, updated: string): ConnectionState => ({
  id: '2c4b8f0e-4a5d-4c86-b3a4-93e1b6b5f8d7',
  created,
  updated,
  facts: {
    company,
    datasource: { name: 'Pacific Gas & Electric', url: 'https://www.pge.com' },
    externalId: 'connection-77',
    sitesRelations: [{ accountIds: ['1003348862'], datasourceTypes: ['ELECTRICITY'], site }],
    status,
    url: 'https://www.pge.com',
    ...unsent,
  },
});

/** Members of a connection record that no event contains. */
const unsent = {
  statusLastUpdateTime: '',
  statusFirstSeenTime: '',
  statusErrorDetail: '',
  accounts: [],
  country: 'US',
  initialSites: [],
  initialDatasourceTypes: [],
  username: '',
  workflowOwnerEmail: '',
  dataCollectionStartDate: null,
  multiplyByOccupancy: false,
  isActive: true,
};

const document = (created: string, updated: string): DocumentState => ({
  id: '9b2d1f6e-0c57-4f1c-9e57-3c5d9a1e7f42',
  company,
  site,
  created,
  updated,
});

const sync = (now: string) => ({
  meterId: 'e3a1c9d2-6b84-4f0f-a1f7-52c0d4b8e913',
  start: `${daysBefore(now, 1).slice(0, 10)}T00:00:00.000000`,
  end: `${now.slice(0, 10)}T00:00:00.000000`,
  createdCount: 92,
  updatedCount: 4,
  companyExternalId: company.externalId,
  accountNumber: '1003348862',
  granularitySeconds: [900],
  usageUnits: ['kWh'],
  qualities: ['ACTUAL'],
});

const daysBefore = (now: string, days: number): string =>
  toText(fromText(now) - secondsToMicros(days * 86_400));
