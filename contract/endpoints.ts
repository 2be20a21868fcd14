import { z } from 'zod';

/** Filters that narrow or widen a listing. */
export const listingFilters = ['updatedSince', 'withDeleted'] as const;
export type ListingFilter = (typeof listingFilters)[number];

const parameters = z.record(z.string(), z.string());

/**
 * The endpoint catalogue: where the service has each resource. `null` means that it has no such endpoint.
 * - `path` and `query` may contain placeholders: {companyId} {siteId} {meterId} {id} {start} {end} {since}. A
 *   query parameter without a value for its placeholder is left out.
 * - `items` and `total` name the keys of the envelope (seed 2.7). A bare array instead of an envelope is one
 *   page.
 * - `updatedSince` has the parameters that select records updated since the day {since}.
 * - `withDeleted` has the parameters that include deleted records.
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

/**
 * Days are UTC and mean their start (service-facts 5): an end date would exclude that day, so there is none.
 */
const updatedSince = { dateType: 'UPDATED_DATE', startDate: '{since}' };

/** The defaults: paths of seed 4, the rest from the service's public documentation. */
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

/** Value of SERVICE_ENDPOINTS: any of the entries, each complete or null. */
export const endpointOverrides = z.partialRecord(z.enum(endpointNames), endpoint.nullable());
