import { z } from 'zod';

/** Parameters that narrow or widen what a listing shows. */
export const listingFilters = ['updatedSince', 'withDeleted'] as const;
export type ListingFilter = (typeof listingFilters)[number];

const parameters = z.record(z.string(), z.string());

/**
 * The endpoint catalogue: where the service keeps each resource. `null` says that it has no such endpoint.
 * `path` and `query` may hold placeholders: {companyId} {siteId} {meterId} {id} {start} {end} {since}; a query
 * parameter whose placeholder has no value is left out. `items` and `total` name the keys of the envelope (seed 2.7); a
 * bare array instead of an envelope is one page. `updatedSince` are the parameters that leave records which were
 * updated since the day {since}, `withDeleted` those that bring deleted records in.
 */
export const endpoint = z.strictObject({
  path: z.string().startsWith('/'),
  items: z.string().optional(),
  total: z.string().optional(),
  query: parameters.optional(),
  updatedSince: parameters.optional(),
  withDeleted: parameters.optional(),
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

/** Days are UTC and compared with their beginning (service-facts 5), so a last day would leave itself out. */
const updatedSince = { dateType: 'UPDATED_DATE', startDate: '{since}' };

/** Defaults: the paths that the seed shows (section 4), the rest from the service's public documentation. */
export const defaultEndpoints: EndpointCatalogue = {
  companies: { path: '/company', items: 'companies', total: 'totalCompanies' },
  connections: {
    path: '/connection/company/{companyId}',
    items: 'connections',
    total: 'totalConnections',
    query: { limit: '100' },
  },
  documents: {
    path: '/document/company/{companyId}',
    items: 'documents',
    total: 'totalDocuments',
    updatedSince,
    withDeleted: { isDeleted: 'true' },
  },
  usageData: {
    path: '/usage/company/{companyId}',
    items: 'usageData',
    total: 'totalUsageData',
    updatedSince,
  },
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
