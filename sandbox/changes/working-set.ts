import type { PendingEvent } from '../events/outbox.ts';
import type { EventType } from '../events/payloads.ts';
import { notFound, Problem } from '../problem.ts';
import type { Bill } from '../records/bill.ts';
import type { CompanyFacts, CompanyObject, SiteFacts, SiteObject } from '../records/company.ts';
import type { ConnectionFacts } from '../records/connection.ts';
import type { MeterInPlace } from '../records/meter.ts';
import type { Micros } from '../timestamps.ts';

export interface Connection {
  readonly id: string;
  readonly created: string;
  readonly updated: string;
  readonly facts: ConnectionFacts;
  readonly secrets: Readonly<Record<string, unknown>>;
}

export interface Document {
  readonly id: string;
  readonly company: CompanyObject;
  readonly created: string;
  readonly updated: string;
  readonly deletedAt: string | null;
  readonly bill: Bill;
}

export interface Site extends SiteObject {
  readonly companyId: string;
}

/** The days that the bills of an account cover, from the first to the last. */
export interface Billed {
  readonly from: string;
  readonly until: string;
}

export interface NewCompany {
  readonly organizationId: string | undefined;
  readonly company: CompanyObject;
  readonly facts: CompanyFacts;
}

export interface NewSite extends Site {
  readonly timeZone: string;
  readonly facts: SiteFacts;
}

/** The records that a batch of changes touches, in memory. Each change sees the changes before it. */
export interface WorkingSet {
  readonly companies: Map<string, CompanyObject>;
  readonly sites: Map<string, Site>;
  readonly connections: Map<string, Connection>;
  readonly meters: Map<string, MeterInPlace>;
  readonly documents: Map<string, Document>;
  /** By account. Accounts without bills are absent. */
  readonly billed: Map<string, Billed>;
  readonly newCompanies: NewCompany[];
  readonly newSites: NewSite[];
  readonly newMeters: MeterInPlace[];
  readonly changedConnections: Set<string>;
  /** Documents whose columns change. Documents whose bill changes, too, are in `rewrittenDocuments`. */
  readonly changedDocuments: Set<string>;
  readonly rewrittenDocuments: Set<string>;
  readonly events: PendingEvent[];
}

/** Everything that a change depends on. Time and ids are given, so a change can be repeated. */
export interface ChangeContext {
  readonly set: WorkingSet;
  readonly now: Micros;
  readonly newId: () => string;
}

export function emptyWorkingSet(): WorkingSet {
  return {
    companies: new Map(),
    sites: new Map(),
    connections: new Map(),
    meters: new Map(),
    documents: new Map(),
    billed: new Map(),
    newCompanies: [],
    newSites: [],
    newMeters: [],
    changedConnections: new Set(),
    changedDocuments: new Set(),
    rewrittenDocuments: new Set(),
    events: [],
  };
}

/** @throws Problem 404 if the record does not exist */
export function take<T>(records: ReadonlyMap<string, T>, what: string, id: string): T {
  const record = records.get(id);
  if (record === undefined) throw notFound(`${what} ${id}`);
  return record;
}

/** Returns the id for a new record. Throws a Problem 409 if a record already has it (service.md 6.2). */
export function unused(records: ReadonlyMap<string, unknown>, what: string, id: string): string {
  if (records.has(id)) throw new Problem(409, `${what} ${id} exists`);
  return id;
}

export function emit(set: WorkingSet, companyId: string, type: EventType, payload: object): void {
  set.events.push({ companyId, type, payload });
}
