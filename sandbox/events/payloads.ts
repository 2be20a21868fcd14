import type { CompanyObject, SiteObject } from '../records/company.ts';
import type { ConnectionFacts } from '../records/connection.ts';

/** Types of events (service.md 6.2). */
export const eventTypes = [
  'connection.created.v2',
  'connection.updated.v2',
  'connection.validated.v2',
  'document.created.v2',
  'document.updated.v2',
  'document.deleted.v2',
  'intervals.synced',
] as const;
export type EventType = (typeof eventTypes)[number];

export interface Dated {
  readonly id: string;
  readonly created: string;
  readonly updated: string;
}

export interface ConnectionState extends Dated {
  readonly facts: ConnectionFacts;
}

/** The payload of `connection.created.v2` (service.md 2.4): no `eventType`, `old` or `protectedChanges`. */
export function connectionPayload({ id, created, updated, facts }: ConnectionState) {
  return {
    company: facts.company,
    created,
    datasource: { name: facts.datasource.name },
    externalId: facts.externalId,
    id,
    sitesRelations: facts.sitesRelations,
    status: facts.status,
    updated,
    url: facts.url,
  };
}

/** The payload of `connection.updated.v2` and `.validated.v2` (service.md 2.4). `old` has no secrets. */
export function connectionChangePayload(
  eventType: 'connection.updated.v2' | 'connection.validated.v2',
  connection: ConnectionState,
  protectedChanges: readonly string[],
  old: object,
) {
  return { ...connectionPayload(connection), eventType, protectedChanges, old };
}

export interface DocumentState extends Dated {
  readonly company: CompanyObject;
  readonly site: SiteObject;
}

/** The payload of events about documents (service.md 2.5). Only `document.updated.v2` has `old`. */
export function documentPayload(
  eventType: 'document.created.v2' | 'document.updated.v2' | 'document.deleted.v2',
  { id, company, site, created, updated }: DocumentState,
  old?: object,
) {
  return { eventType, id, company, site, created, updated, ...(old === undefined ? {} : { old }) };
}

export interface IntervalSync {
  readonly meterId: string;
  readonly start: string;
  readonly end: string;
  readonly createdCount: number;
  readonly updatedCount: number;
  readonly companyExternalId: string | null;
  readonly accountNumber: string | null;
  readonly granularitySeconds: readonly number[];
  readonly usageUnits: readonly string[];
  readonly qualities: readonly string[];
}

/** The payload of `intervals.synced` (service.md 2.6): a range, no readings and no `eventType`. */
export function intervalsPayload(sync: IntervalSync) {
  return {
    meterId: sync.meterId,
    start: sync.start,
    end: sync.end,
    intervalCount: sync.createdCount + sync.updatedCount,
    createdCount: sync.createdCount,
    updatedCount: sync.updatedCount,
    companyExternalId: sync.companyExternalId,
    accountNumber: sync.accountNumber,
    granularitySeconds: sync.granularitySeconds,
    usageUnits: sync.usageUnits,
    qualities: sync.qualities,
  };
}
