import { z } from 'zod';

/**
 * The endpoint catalogue: where the service keeps each resource. `null` says that it has no such endpoint.
 * `path` and `query` may hold placeholders: {companyId} {siteId} {meterId} {id} {start} {end}; a query parameter
 * whose placeholder has no value is left out. `items` and `total` name the keys of the envelope (seed 2.7); a
 * bare array instead of an envelope is one page.
 */
export const endpoint = z.strictObject({
  path: z.string().startsWith('/'),
  items: z.string().optional(),
  total: z.string().optional(),
  query: z.record(z.string(), z.string()).optional(),
});
export type Endpoint = z.infer<typeof endpoint>;

export const endpointNames = [
  'companies',
  'connections',
  'documents',
  'usageData',
  'meters',
  'intervals',
  'document',
  'documentUsage',
] as const;
export type EndpointName = (typeof endpointNames)[number];
export type EndpointCatalogue = Readonly<Record<EndpointName, Endpoint | null>>;

/** Defaults: the paths that the seed shows (section 4), the rest from the service's public documentation. */
export const defaultEndpoints: EndpointCatalogue = {
  companies: { path: '/company', items: 'companies', total: 'totalCompanies' },
  connections: {
    path: '/connection/company/{companyId}',
    items: 'connections',
    total: 'totalConnections',
    query: { limit: '100' },
  },
  documents: { path: '/document/company/{companyId}', items: 'documents', total: 'totalDocuments' },
  usageData: { path: '/usage/company/{companyId}', items: 'usageData', total: 'totalUsageData' },
  meters: { path: '/meter/company/{companyId}', items: 'meters', total: 'totalMeters' },
  intervals: {
    path: '/interval/meter/{meterId}',
    items: 'intervals',
    total: 'totalIntervals',
    query: { startDate: '{start}', endDate: '{end}' },
  },
  document: { path: '/document/{id}' },
  documentUsage: { path: '/usage/document/{id}', items: 'usageData', total: 'totalUsageData' },
};

/** What SERVICE_ENDPOINTS may hold: any of the entries, each whole or null. */
export const endpointOverrides = z.partialRecord(z.enum(endpointNames), endpoint.nullable());
