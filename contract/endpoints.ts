/** Filters that narrow or widen a listing. */
export type ListingFilter = 'updatedSince' | 'withDeleted';

/**
 * The endpoint catalogue: where the service has each resource. `null` means that it has no such endpoint.
 * - `path` and `query` may contain placeholders: {companyId} {siteId} {meterId} {id} {start} {end} {since}. A
 *   query parameter without a value for its placeholder is left out.
 * - `items` and `total` name the keys of the envelope (service.md 2.7). A bare array instead of an envelope is one
 *   page.
 * - `updatedSince` has the parameters that select records updated since the day {since}.
 * - `withDeleted` has the parameters that include deleted records.
 */
export interface Endpoint {
  readonly path: string;
  readonly items?: string | undefined;
  readonly total?: string | undefined;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly updatedSince?: Readonly<Record<string, string>> | undefined;
  readonly withDeleted?: Readonly<Record<string, string>> | undefined;
}

/** The resources that a backfill reads for each company, in this order. */
export const companyResources = ['connections', 'meters', 'documents', 'usageData', 'intervals'] as const;
export type CompanyResource = (typeof companyResources)[number];

/** The resources that an audit compares. */
export const auditResources = ['companies', 'sites', ...companyResources] as const;
export type AuditResource = (typeof auditResources)[number];

/** Endpoints of one record. A service may lack them; then listings are read. */
export const singleEndpoints = ['connection', 'document', 'documentUsage'] as const;
export type SingleEndpoint = (typeof singleEndpoints)[number];

export const endpointNames = ['companies', ...companyResources, ...singleEndpoints] as const;
export type EndpointName = (typeof endpointNames)[number];
export type EndpointCatalogue = Readonly<Record<EndpointName, Endpoint | null>>;

/** Days are UTC days and stand for their start. No end date is sent, because it would exclude its own day. */
const updatedSince = { dateType: 'UPDATED_DATE', startDate: '{since}' };

/**
 * The defaults. The paths are from service.md 4, everything else is from the service's public documentation.
 */
export const defaultEndpoints: EndpointCatalogue = {
  companies: { path: '/company', items: 'companies', total: 'totalCompanies' },
  connections: {
    path: '/connection/company/{companyId}',
    items: 'connections',
    total: 'totalConnections',
    query: { limit: '100' },
  },
  meters: { path: '/meter/company/{companyId}', items: 'meters', total: 'totalMeters' },
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
  intervals: {
    path: '/interval/meter/{meterId}',
    items: 'intervals',
    total: 'totalIntervals',
    query: { startDate: '{start}', endDate: '{end}' },
  },
  // A page of the listing has 100 connections, so only companies with more have a use for it.
  connection: null,
  document: { path: '/document/{id}' },
  documentUsage: { path: '/usage/document/{id}', items: 'usageData', total: 'totalUsageData' },
};
