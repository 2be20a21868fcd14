import { setTimeout } from 'node:timers/promises';
import { type AuditResource, auditResources } from '../../contract/endpoints.ts';
import { Failure, type FailureCode } from '../../contract/failures.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import type { KeptBy } from '../../db/deletes/list-rows.ts';
import type { Difference, EventBehind } from '../../db/read/compare-records.ts';
import type { UnlistedRow } from '../../db/read/extra-rows.ts';

/** One reading of a listing. */
export interface Pass {
  /** Why the reading does not show what the service has; undefined if it does. */
  readonly doubt: string | undefined;
  /** Rows of the warehouse that the reading does not show. */
  readonly unlisted?: readonly UnlistedRow[];
}

/** A listing, as a report names it: by its company or meter. */
export interface AuditedListing {
  readonly resource: AuditResource;
  readonly id: string;
}

/** Answers about one listing. All other failures concern every listing. */
const refusals: ReadonlySet<FailureCode> = new Set([
  'SERVICE_NOT_FOUND',
  'SERVICE_ACCESS_DENIED',
  'SERVICE_REQUEST_REFUSED',
]);

/** What an audit found so far. */
export class Tally {
  readonly report = emptyReport();
  /** The companies of a full audit: companies that the service lists, and other companies that were read. */
  companies: ReadonlySet<string> = new Set();
  /** In a full audit: rows that no company owns and that no listing has shown yet. */
  readonly ownerless = new Map<AuditResource, Set<string>>();
  /** For rows that several listings should contain: how many listings did not, by resource and id. */
  readonly #unlisted = new Map<string, number>();
  /** Listings that are suspect or unread, and so reported once. */
  readonly #doubted = new Set<string>();
  readonly #repairs: boolean;
  /** Waits for changes under way. */
  readonly #settle: () => Promise<void>;
  /** How many further waits may pass without changing anything. */
  #settlesLeft: number;

  constructor({ repairs, settleMs, signal }: { repairs: boolean; settleMs: number; signal: AbortSignal }) {
    this.#repairs = repairs;
    this.#settle = () => setTimeout(settleMs, undefined, { signal });
    this.#settlesLeft = repairs || settleMs === 0 ? 0 : attemptPolicy.settlesMax;
  }

  /**
   * Reads a listing, again while it contradicts itself, and after a wait if it differs from the warehouse,
   * because the change may be on its way. The last pass counts, but a repair counts each pass. A listing that
   * never agrees with itself is suspect.
   */
  async read<P extends Pass>(listing: AuditedListing, pass: (found: AuditReport) => Promise<P>): Promise<P> {
    let waited = false;
    for (let passes = 1; ; passes++) {
      const found = emptyReport();
      const read = await pass(found);
      const isSure = read.doubt === undefined;
      const differs = found.differences > 0 || (read.unlisted ?? []).some(({ kept }) => !kept);
      if (waited && differs) this.#settlesLeft -= 1;
      const settles = isSure && differs && this.#settlesLeft > 0;
      const isLast = (isSure && !settles) || passes === attemptPolicy.passesMax;
      if (isLast || this.#repairs) addReport(this.report, found);
      if (!isLast) {
        if (settles) await this.#settle();
        waited ||= settles;
        continue;
      }
      if (read.doubt !== undefined) this.#doubt(listing, 'suspect', read.doubt);
      return read;
    }
  }

  /** Does a part of an audit. A listing that the service refuses to show is reported, and does not end the audit. */
  async unlessRefused<T>(listing: AuditedListing, part: () => Promise<T>): Promise<T | undefined> {
    try {
      return await part();
    } catch (error) {
      if (!(error instanceof Failure) || !refusals.has(error.code)) throw error;
      this.#doubt(listing, 'unread', error.message);
      return undefined;
    }
  }

  /** Adds differences to the report. */
  count(resource: AuditResource, differences: readonly Found[]): void {
    addTo(this.report, resource, differences, 0);
  }

  /**
   * Returns the rows that are missing from every listing of a full audit that should contain them.
   * @param companyId the company whose listing was read; null for all
   */
  extra(resource: AuditResource, companyId: string | null, unlisted: readonly UnlistedRow[]): Found[] {
    const extra = unlisted.filter(({ id, companies }) => {
      const listings = companies.filter((one) => one === companyId || this.companies.has(one)).length;
      if (listings <= 1) return true;
      const key = `${resource} ${id}`;
      const times = (this.#unlisted.get(key) ?? 0) + 1;
      this.#unlisted.set(key, times);
      return times === listings;
    });
    return extra.map(({ id, kept }) => ({ id, state: kept ? 'kept' : 'extra' }));
  }

  /** Reports a listing once, because the listing of a company's meters is read twice. */
  #doubt({ resource, id }: AuditedListing, state: 'suspect' | 'unread', reason: string): void {
    const key = `${resource} ${id}`;
    this.ownerless.delete(resource);
    if (resource === 'meters') this.ownerless.delete('intervals');
    if (!this.#doubted.has(key)) this.count(resource, [{ id, state, reason }]);
    this.#doubted.add(key);
  }
}

/**
 * What is counted of a resource. `suspect` are listings that contradict themselves, and `unread` listings that
 * the service refused to show, so that nothing shows what it has. Not differences are rows that somebody decided
 * to keep (`kept`), and values that no column can hold, because `raw` has them (`unreadable`).
 */
const counted = [
  'compared',
  'missing',
  'extra',
  'different',
  'suspect',
  'unread',
  'kept',
  'unreadable',
] as const;
type ResourceAudit = Record<(typeof counted)[number], number>;

/** A difference, or a listing of a company or meter that contradicts itself or was refused. */
interface Found extends Omit<Difference, 'state'> {
  readonly state: Difference['state'] | 'suspect' | 'unread';
  /** Why a listing is suspect or unread. */
  readonly reason?: string;
}

export interface Example extends Found {
  readonly resource: AuditResource;
  /** The latest events about the record, newest first. */
  readonly events: readonly EventBehind[];
  /** Why Postgres refused the record, if it did; its text is in `metersync.rejected_records`. */
  readonly refused?: string | undefined;
}

export interface AuditReport {
  compared: number;
  differences: number;
  resources: Record<AuditResource, ResourceAudit>;
  /** How many rows are kept although the service no longer has them, and by whose decisions. */
  kept: { rows: number; decisions: readonly KeptBy[] };
  /** Examples of the differences, for people: unread listings, then the first by resource and id. */
  examples: Example[];
}

const examplesMax = 50;

export function emptyReport(): AuditReport {
  const none = () => Object.fromEntries(counted.map((count) => [count, 0]));
  const resources = Object.fromEntries(auditResources.map((name) => [name, none()]));
  return {
    compared: 0,
    differences: 0,
    resources: resources as AuditReport['resources'],
    kept: { rows: 0, decisions: [] },
    examples: [],
  };
}

/** Adds a comparison. The order in which the parts of an audit are added does not change the report. */
export function addTo(
  report: AuditReport,
  resource: AuditResource,
  differences: readonly Found[],
  compared: number,
  unreadable = 0,
): void {
  const counts = report.resources[resource];
  counts.unreadable += unreadable;
  counts.compared += compared;
  report.compared += compared;
  for (const difference of differences) {
    counts[difference.state] += 1;
    if (difference.state === 'kept') {
      report.kept.rows += 1;
      continue;
    }
    report.differences += 1;
    addExample(report.examples, { ...difference, resource, events: [] });
  }
}

function addReport(report: AuditReport, part: AuditReport): void {
  for (const resource of auditResources) {
    const [counts, more] = [report.resources[resource], part.resources[resource]];
    for (const count of counted) counts[count] += more[count];
  }
  report.compared += part.compared;
  report.differences += part.differences;
  report.kept.rows += part.kept.rows;
  for (const example of part.examples) addExample(report.examples, example);
}

function addExample(examples: Example[], example: Example): void {
  const place = examples.findLastIndex((other) => inOrder(other, example) <= 0) + 1;
  if (place === examplesMax) return;
  examples.splice(place, 0, example);
  if (examples.length > examplesMax) examples.pop();
}

const rank = new Map(auditResources.map((resource, place) => [resource, place]));

/** Listings that were not read come first, because any number of differences may be behind them. */
function inOrder(a: Example, b: Example): number {
  return (
    Number(b.state === 'unread') - Number(a.state === 'unread') ||
    (rank.get(a.resource) ?? 0) - (rank.get(b.resource) ?? 0) ||
    byText(a.id, b.id) ||
    byText(a.state, b.state)
  );
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
