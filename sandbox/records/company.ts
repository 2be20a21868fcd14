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
