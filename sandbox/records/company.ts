/** Embedded in connections and documents (service.md 2.2). */
export interface CompanyObject {
  readonly externalId: string;
  readonly id: string;
  readonly name: string;
  readonly publicId: string;
}

/** Embedded in connections and documents (service.md 2.3). */
export interface SiteObject {
  readonly id: string;
  readonly name: string;
}

/** What a company record has besides its id, its sites and the fields of CompanyObject. */
export interface CompanyFacts {
  readonly users: readonly string[];
  readonly dataCollectionStartDate: string;
  readonly isDemandEnabled: boolean;
  readonly isImpliedMeteringEnabled: boolean;
  readonly impliedMeteringFraction: string;
  readonly isBasicIdentifierMappingEnabled: boolean;
  readonly isLowAccuracyModeEnabled: boolean;
}

/** What a site record has besides its id and name. */
export interface SiteFacts {
  readonly dataCollectionStopDate: string | null;
  readonly externalId: string | null;
  readonly address: string;
  readonly path: readonly string[];
  readonly occupancyPercent: string | null;
}

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

interface Identifier {
  readonly rawName: string;
  readonly value: string;
  readonly name: string;
}

/** Every member of a meter record except its id. */
export interface MeterFacts {
  readonly site: string;
  readonly account: string;
  readonly address: string;
  readonly identifiers: readonly Identifier[];
  readonly datasourceType: string;
  readonly isTracked: boolean;
  readonly timeOfUse: string | null;
  readonly netMeteringType: string | null;
  readonly waterType: string | null;
  readonly meterHighLow: string | null;
  readonly gasType: string | null;
  readonly fuelType: string | null;
  readonly districtType: string | null;
  readonly districtMediumType: string | null;
  readonly wasteDescription: string | null;
  readonly wasteType: string | null;
  readonly wasteStream: string | null;
  readonly refrigerantType: string | null;
}

/** Returns the facts of a meter that follow from its site, its account and its commodity. */
export function meterFacts(
  numbers: { readonly meter: string; readonly account: string },
  place: Pick<MeterFacts, 'site' | 'account' | 'address' | 'datasourceType' | 'timeOfUse'>,
): MeterFacts {
  const { site, account, address, datasourceType, timeOfUse } = place;
  return {
    site,
    account,
    address,
    identifiers: [
      { rawName: 'Meter No.', value: numbers.meter, name: 'METER' },
      { rawName: 'Account Number', value: numbers.account, name: 'ACCOUNT' },
    ],
    datasourceType,
    isTracked: true,
    timeOfUse,
    netMeteringType: null,
    waterType: datasourceType === 'WATER' ? 'POTABLE_WATER' : null,
    meterHighLow: null,
    gasType: datasourceType === 'GAS' ? 'NATURAL_GAS' : null,
    fuelType: null,
    districtType: null,
    districtMediumType: null,
    wasteDescription: null,
    wasteType: null,
    wasteStream: null,
    refrigerantType: null,
  };
}

/** A meter with what a bill needs from its account, site and connection. */
export interface MeterInPlace {
  readonly id: string;
  readonly number: number;
  readonly companyId: string;
  readonly connectionId: string;
  readonly accountId: string;
  readonly accountNumber: string;
  readonly site: SiteObject;
  readonly utility: { readonly name: string; readonly url: string };
  readonly country: string;
  readonly facts: MeterFacts;
}

/** A company as it is stored. Without an organization, it belongs to the first one. */
export interface CompanyRow {
  readonly organizationId: string | undefined;
  readonly company: CompanyObject;
  readonly facts: CompanyFacts;
}

export interface SiteRow extends SiteObject {
  readonly companyId: string;
  readonly timeZone: string;
  readonly facts: SiteFacts;
}

export interface ConnectionRow {
  readonly id: string;
  readonly created: string;
  readonly updated: string;
  readonly facts: ConnectionFacts;
  readonly secrets: Readonly<Record<string, unknown>>;
}
