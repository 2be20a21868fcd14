import type { Bill } from '../records/bill.ts';
import type { CompanyFacts, CompanyObject, SiteFacts } from '../records/company.ts';
import type { ConnectionFacts } from '../records/connection.ts';
import type { MeterInPlace } from '../records/meter.ts';

export interface CompanyRow {
  readonly organizationId: string;
  readonly company: CompanyObject;
  readonly facts: CompanyFacts;
}

export interface SiteRow {
  readonly id: string;
  readonly companyId: string;
  readonly name: string;
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

export interface DocumentRow {
  readonly id: string;
  readonly company: CompanyObject;
  readonly created: string;
  readonly updated: string;
  readonly bill: Bill;
}

/** Everything that belongs to one company, except intervals, which are streamed. */
export interface CompanyData {
  readonly company: CompanyRow;
  readonly sites: readonly SiteRow[];
  readonly connections: readonly ConnectionRow[];
  readonly meters: readonly MeterInPlace[];
  readonly documents: readonly DocumentRow[];
}
