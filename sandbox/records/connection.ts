import type { CompanyObject, SiteObject } from './company.ts';

/** service.md 2.4: which of the connection's accounts serve which site. */
export interface SiteRelation {
  readonly accountIds: readonly string[];
  readonly datasourceTypes: readonly string[];
  readonly site: SiteObject;
}

export interface Account {
  readonly id: string;
  readonly meters: readonly string[];
  readonly accountNumber: string;
  readonly isTracked: boolean;
  readonly trackingStatus: string;
  readonly isDuplicated: string;
  readonly dataCollectionStartDate: string | null;
  readonly isCollectingInvoiceData: boolean;
  readonly isCollectingSmartMeterData: boolean;
  readonly datasourceTypes: readonly string[];
  readonly lastServiceDate: string | null;
  readonly status: string;
  readonly statusLastUpdateTime: string;
  readonly statusFirstSeenTime: string;
  readonly statusErrorDetail: string;
}

/** Every member of a connection record except `id`, `created` and `updated`, which are columns. */
export interface ConnectionFacts {
  readonly company: CompanyObject;
  readonly datasource: { readonly name: string; readonly url: string };
  readonly externalId: string;
  readonly sitesRelations: readonly SiteRelation[];
  readonly status: string;
  readonly url: string;
  readonly statusLastUpdateTime: string;
  readonly statusFirstSeenTime: string;
  readonly statusErrorDetail: string;
  readonly accounts: readonly Account[];
  readonly country: string;
  readonly initialSites: readonly string[];
  readonly initialDatasourceTypes: readonly string[];
  readonly username: string;
  readonly workflowOwnerEmail: string;
  readonly dataCollectionStartDate: string | null;
  readonly multiplyByOccupancy: boolean;
  readonly isActive: boolean;
}

/** Statuses of a connection: the three of service.md 3.3, and others of the public documentation. */
export const connectionStatuses = [
  'PENDING',
  'CONNECTED',
  'UNDER_INVESTIGATION',
  'WEBSITE_DOWN',
  'URL_INACCESSIBLE',
  'NO_ACCOUNTS_FOUND',
  'OTHER_ERROR',
  'MFA_TOKEN_EXPIRED',
  'PASSWORD_INCORRECT',
  'NEW_PASSWORD_NEEDED',
  'ADDITIONAL_CREDENTIALS_NEEDED',
  'COMPANY_INACTIVE',
] as const;

/** The statuses that mean a problem. */
export const failingStatuses: readonly string[] = connectionStatuses.filter(
  (status) => status !== 'PENDING' && status !== 'CONNECTED',
);
