import { randomUUID } from 'node:crypto';
import pMap from 'p-map';
import PQueue from 'p-queue';
import type { EndpointName } from '../../contract/endpoints.ts';
import {
  type AuditResource,
  auditResources,
  type CompanyResource,
  companyResources,
} from '../../contract/endpoints.ts';
import { canonicalId } from '../../contract/ids.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { metersAfter } from '../../db/backfill/order.ts';
import { warehouseNow } from '../../db/catch-up/due.ts';
import type { Warehouse } from '../../db/connect.ts';
import { liveCompanies, unlistedCompanies } from '../../db/read/audited-companies.ts';
import {
  compareIntervals,
  countIntervals,
  extraReadings,
  joinKeys,
  noKeys,
  unlistedMeters,
} from '../../db/read/compare-readings.ts';
import {
  comparePage,
  type Difference,
  type UnlistedRow,
  unlistedRows,
} from '../../db/read/compare-records.ts';
import { ownerlessRows, type StrayRow, strayRows } from '../../db/read/stray-rows.ts';
import { forgetListed } from '../../db/records/owner.ts';
import { forgetVersions, removeReadings } from '../../db/records/repair.ts';
import type { RecordResource } from '../../db/resources.ts';
import type { ServiceClient } from '../../service/client.ts';
import { type Walk, walkPages } from '../../service/walk.ts';
import { explain } from './explain.ts';
import { dated, doubtOf, onlyCompany, present, type ReadPage, siteIds } from './listing.ts';
import { columnsOf, type ReadingsWalk, walkReadings } from './readings.ts';
import { Repairer } from './repairer.ts';
import { type AuditReport, addReport, addTo, emptyReport, type Found } from './report.ts';
import { describeSample, type SampleWanted, sampleOf } from './sample.ts';

export type { AuditReport, Example } from './report.ts';

export interface AuditOptions {
  readonly warehouse: Warehouse;
  readonly service: ServiceClient;
  /**
   * Listings that are read at once. Each requests one page at a time, and needs a connection of the
   * warehouse's pool.
   */
  readonly concurrency: number;
  readonly companyId?: string | undefined;
  /**
   * Compares the records of a random sample of companies. Companies and sites are in one listing, which is
   * compared completely. A record that several companies list is extra if the sample has all of them.
   */
  readonly sample?: SampleWanted | undefined;
  /** Companies of the settings: they live whether the service lists them or not. */
  readonly configured?: readonly string[] | undefined;
  /** Only these are compared; all when absent. */
  readonly resources?: readonly AuditResource[] | undefined;
  /**
   * ISO time: compares only records that the service changed since, and readings that start since. Resources
   * without a time of change (companies, sites, meters) are compared completely.
   */
  readonly since?: string | undefined;
  readonly onProgress?: (progress: { companies: number; compared: number }) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads the service again and compares it with the warehouse, changing nothing. A change at the service
 * meanwhile appears as a difference: audit a quiet one. Memory holds the ids, or 8 bytes for each reading, and a
 * page of each listing that is read at once, and the ids of rows that no audited company has.
 */
export async function audit(options: AuditOptions): Promise<AuditReport> {
  return await run(new Auditor(options, null), options);
}

/**
 * Audits, and writes what differs again from the service. A row takes the service's state even over a newer
 * version. A row that two passes over the listing do not contain is tombstoned (`metersync deletes undo`
 * takes that back). Readings that the service does not have are removed. Rows that a read or an event changed
 * meanwhile are left alone. The report holds the differences that were found; deletions are noted under
 * `runId`.
 */
export async function repair(
  options: AuditOptions & { readonly apiVersion: string },
): Promise<AuditReport & { readonly runId: string }> {
  const runId = randomUUID();
  const report = await run(new Auditor(options, { runId, apiVersion: options.apiVersion }), options);
  return { ...report, runId };
}

async function run(auditor: Auditor, options: AuditOptions): Promise<AuditReport> {
  try {
    const all = await auditor.companies(options.companyId);
    const { sample, concurrency } = options;
    const companies = sample === undefined ? all : sampleOf(all, sample);
    const isFull = sample === undefined && options.companyId === undefined && options.since === undefined;
    if (isFull) await auditor.noteOwnerless();
    await pMap(companies, (companyId) => auditor.company(companyId), { concurrency });
    if (isFull) await auditor.strays();
    await auditor.removeUnlisted();
    auditor.report.examples = await explain(options.warehouse.db, auditor.report.examples);
    if (sample === undefined) return auditor.report;
    const taken = { companies: companies.length, of: all.length, different: auditor.different.size };
    return { ...auditor.report, sample: describeSample(sample.seed, taken) };
  } catch (error) {
    await auditor.stop(error);
    throw error;
  }
}

/** One reading of a listing. */
interface Pass {
  /** Why it does not show what the service has; undefined if it does. */
  readonly doubt: string | undefined;
  /** Whether a record came on two pages: another pass may show more. */
  readonly repeated?: boolean;
}

/** A listing, as a report names it: by its company or meter. */
interface Listing {
  readonly resource: AuditResource;
  readonly id: string;
  /** The company that is audited; null for the list of all. */
  readonly companyId: string | null;
}

class Auditor {
  readonly report = emptyReport();
  /** Companies whose records differ. */
  readonly different = new Set<string>();
  readonly #warehouse: Warehouse;
  readonly #service: ServiceClient;
  readonly #concurrency: number;
  /** Queue of all walks over listings, each with its work on the warehouse. */
  readonly #walks: PQueue;
  readonly #stopped = new AbortController();
  readonly #signal: AbortSignal;
  readonly #onProgress: AuditOptions['onProgress'];
  /** When the audit began by the warehouse's clock; undefined if the list of companies is suspect. */
  #beganAt: string | undefined;
  /** The companies of a full audit: those that the service lists, and others that were read. */
  #all: ReadonlySet<string> = new Set();
  /** Of rows that several listings should contain, how many did not, by resource and id. */
  readonly #unlisted = new Map<string, number>();
  /** Rows that no company owns, of a full audit, until a listing shows them. */
  readonly #ownerless = new Map<AuditResource, Set<string>>();
  /** Meters that no listing has, with readings in the warehouse. */
  readonly #unlistedMeters = new Set<string>();
  /** Whether the service answered for the readings of any meter. */
  #answersReadings = false;
  readonly #suspects = new Set<string>();
  #companiesDone = 0;
  readonly #resources: readonly AuditResource[];
  readonly #since: string | null;
  readonly #configured: readonly string[];
  readonly #repairer: Repairer | null;

  constructor(options: AuditOptions, repair: { readonly runId: string; readonly apiVersion: string } | null) {
    this.#warehouse = options.warehouse;
    this.#service = options.service;
    this.#concurrency = options.concurrency;
    this.#walks = new PQueue({ concurrency: options.concurrency });
    this.#signal = AbortSignal.any([this.#stopped.signal, ...(options.signal ? [options.signal] : [])]);
    this.#onProgress = options.onProgress;
    this.#resources = options.resources ?? auditResources;
    this.#since = options.since ?? null;
    this.#configured = options.configured ?? [];
    const pages = (endpoint: EndpointName, params: Record<string, string>) => this.#pages(endpoint, params);
    this.#repairer = repair === null ? null : new Repairer({ ...options, ...repair, pages });
  }

  /** Ends all walks that are under way, after one part of the audit has failed. */
  async stop(reason: unknown): Promise<void> {
    this.#stopped.abort(reason);
    await this.#walks.onIdle();
  }

  /** Compares the list of companies and their sites; returns the companies to go on with. */
  async companies(only: string | undefined): Promise<string[]> {
    const { db } = this.#warehouse;
    if (!this.#service.has('companies')) {
      this.#beganAt = await warehouseNow(db);
      this.#all = new Set(await liveCompanies(db));
      return only === undefined ? [...this.#all] : [only];
    }
    const wanted = (['companies', 'sites'] as const).filter((resource) => this.#resources.includes(resource));
    const listing = { resource: 'companies', id: only ?? 'all', companyId: null } as const;
    const { beganAt, all, ids, sites, doubt } = await this.#read(listing, async (found) => {
      const beganAt = await warehouseNow(db);
      const all: string[] = [];
      const ids: string[] = [];
      const sites: string[] = [];
      const walk = this.#pages('companies', {});
      for await (const page of dated(db, walk)) {
        const chosen = only === undefined ? page : onlyCompany(page, only);
        const sitesOfPage = chosen.items.flatMap(siteIds);
        for (const resource of wanted) {
          const compared = resource === 'sites' ? sitesOfPage : chosen.ids;
          await this.#compare(found, resource, null, chosen, compared);
        }
        all.push(...present(page.ids));
        ids.push(...present(chosen.ids));
        sites.push(...sitesOfPage);
      }
      // One company was read whole wherever it was found.
      const doubt = only !== undefined && ids.length > 0 ? undefined : doubtOf(walk);
      return { beganAt, all, ids, sites, doubt };
    });
    if (doubt === undefined) this.#beganAt = beganAt;
    const unlisted = (await unlistedCompanies(db, this.#configured)).filter(({ id }) => !all.includes(id));
    const unlistedIds = unlisted.map(({ id }) => id);
    this.#all = new Set([...all, ...unlisted.flatMap(({ id, wasRead }) => (wasRead ? id : []))]);
    for (const resource of doubt === undefined ? wanted : []) {
      const seen = resource === 'sites' ? sites : ids;
      const extra = this.#extra(
        resource,
        only ?? null,
        await unlistedRows(db, resource, only ?? null, seen, null, unlistedIds),
      );
      this.#count(resource, extra);
      if (this.#repairer === null || extra.length === 0) continue;
      const listing = { resource, companyId: only ?? null };
      if (resource === 'sites')
        await this.#repairer.retire({ ...listing, configured: unlistedIds }, {}, seen, beganAt);
      else if (only === undefined) await this.#repairer.retire(listing, {}, seen, beganAt);
    }
    return only === undefined ? [...this.#all] : [only];
  }

  /**
   * Compares listings one after the other, as a repair of one writes rows of another. Then several meters at
   * once.
   */
  async company(companyId: string): Promise<void> {
    for (const resource of this.#compared()) {
      if (resource !== 'intervals') await this.#inTurn(() => this.#listing(resource, companyId));
    }
    if (this.#compared().includes('intervals')) {
      const meters = await this.#inTurn(() => this.#meters(companyId));
      const concurrency = this.#concurrency;
      await pMap(meters, (meterId) => this.#inTurn(() => this.#meter(companyId, meterId)), { concurrency });
    }
    this.#companiesDone += 1;
    this.#progress();
  }

  /** The resources of companies that are compared. */
  #compared(): CompanyResource[] {
    return companyResources.filter((name) => this.#service.has(name) && this.#resources.includes(name));
  }

  /** Notes rows without a company, before listings are read that may show them. */
  async noteOwnerless(): Promise<void> {
    for (const resource of this.#compared())
      this.#ownerless.set(resource, new Set(await ownerlessRows(this.#warehouse.db, resource)));
  }

  /**
   * Counts live rows as extra whose companies were not read: those that are gone, those that have no row, and
   * none. A repair tombstones them if the list of companies does not contain their company once more.
   */
  async strays(): Promise<void> {
    if (this.#beganAt === undefined) return;
    const { db } = this.#warehouse;
    const audited = [...this.#all, ...this.#configured.map(canonicalId)];
    const found: { resource: CompanyResource; rows: readonly StrayRow[] }[] = [];
    for (const resource of this.#compared()) {
      const ownerless = [...(this.#ownerless.get(resource) ?? [])];
      const rows = await strayRows(db, resource, audited);
      rows.push(...ownerless.map((id) => ({ id, companyId: null })));
      this.#count(
        resource,
        rows.map(({ id }) => ({ id, state: 'extra' })),
      );
      if (rows.length > 0) found.push({ resource, rows });
    }
    if (this.#repairer === null || found.length === 0 || !this.#service.has('companies')) return;
    const again = await this.#repairer.rewriteAll('companies', null, {});
    if (again === undefined || again.length === 0) return;
    for (const { resource, rows } of found) {
      const gone = rows.filter(({ companyId }) => companyId === null || !again.includes(companyId));
      if (resource === 'intervals') {
        for (const { id } of gone) this.#unlistedMeters.add(id);
        continue;
      }
      for (const companyId of new Set(gone.map((row) => row.companyId))) {
        if (companyId !== null) await forgetListed(db, resource, companyId, []);
        await this.#repairer.retireAbsent({ resource, companyId }, [], this.#beganAt);
      }
    }
  }

  /** Lets a repair remove the readings of meters that no listing has. */
  async removeUnlisted(): Promise<void> {
    if (this.#repairer === null || this.#beganAt === undefined || this.#since !== null) return;
    for (const meterId of this.#unlistedMeters)
      await this.#repairer.removeUnlisted(meterId, this.#beganAt, { answers: this.#answersReadings });
  }

  async #inTurn<T>(walk: () => Promise<T>): Promise<T> {
    return await this.#walks.add(async () => {
      this.#signal.throwIfAborted();
      const result = await walk();
      this.#progress();
      return result;
    });
  }

  #progress(): void {
    this.#onProgress?.({ companies: this.#companiesDone, compared: this.report.compared });
  }

  async #listing(resource: Exclude<RecordResource, 'sites' | 'companies'>, companyId: string): Promise<void> {
    const { db } = this.#warehouse;
    const params = { companyId };
    const { beganAt, seen, doubt } = await this.#read(
      { resource, id: companyId, companyId },
      async (found) => {
        const beganAt = await warehouseNow(db);
        const seen: string[] = [];
        const walk = this.#pages(resource, params);
        for await (const page of dated(db, walk)) {
          await this.#compare(found, resource, companyId, page);
          seen.push(...present(page.ids));
          for (const id of present(page.ids)) this.#ownerless.get(resource)?.delete(id);
        }
        return { beganAt, seen, doubt: doubtOf(walk) };
      },
    );
    if (doubt !== undefined) return;
    const unlisted = await unlistedRows(db, resource, companyId, seen, this.#since);
    const extra = this.#extra(resource, companyId, unlisted);
    this.#count(resource, extra, companyId);
    // Also of what another listing may still have: the last of its companies tombstones it.
    if (this.#repairer !== null && unlisted.length > 0)
      await this.#repairer.retire({ resource, companyId }, params, seen, beganAt);
  }

  /**
   * Returns the rows that are missing from every listing that should contain them, of those that a full audit
   * reads. @param companyId the company whose listing was read; null for all
   */
  #extra(resource: AuditResource, companyId: string | null, unlisted: readonly UnlistedRow[]): Difference[] {
    const extra = unlisted.filter(({ id, companies }) => {
      const listings = companies.filter((company) => company === companyId || this.#all.has(company)).length;
      if (listings <= 1) return true;
      const key = `${resource} ${id}`;
      const times = (this.#unlisted.get(key) ?? 0) + 1;
      this.#unlisted.set(key, times);
      return times === listings;
    });
    return extra.map(({ id }) => ({ id, state: 'extra' }));
  }

  /**
   * Returns the meters that the service lists; counts unlisted ones with readings in the warehouse as extra. Without
   * a listing of meters, returns those of the warehouse.
   */
  async #meters(companyId: string): Promise<Set<string>> {
    const { db } = this.#warehouse;
    if (!this.#service.has('meters'))
      return new Set(await metersAfter(db, companyId, null, Number.MAX_SAFE_INTEGER));
    const listing = { resource: 'meters', id: companyId, companyId } as const;
    const { meters, doubt } = await this.#read(listing, async () => {
      const meters = new Set<string>();
      const walk = this.#pages('meters', { companyId });
      for await (const page of walk) for (const id of present(page.ids)) meters.add(id);
      return { meters, doubt: doubtOf(walk) };
    });
    for (const id of meters) this.#ownerless.get('intervals')?.delete(id);
    if (doubt !== undefined) return meters;
    const unlisted = await unlistedMeters(db, companyId, [...meters]);
    const extra = this.#extra('intervals', companyId, unlisted);
    this.#count('intervals', extra, companyId);
    // An empty listing is likelier a fault.
    if (meters.size > 0) for (const { id } of extra) this.#unlistedMeters.add(id);
    return meters;
  }

  async #meter(companyId: string, meterId: string): Promise<void> {
    const listing = { resource: 'intervals', id: meterId, companyId } as const;
    await this.#read(listing, (found) => this.#compareMeter(found, meterId));
  }

  async #compareMeter(found: AuditReport, meterId: string): Promise<Pass> {
    const { db } = this.#warehouse;
    const beganAt = await warehouseNow(db);
    let keys = noKeys;
    let missing = 0;
    const walk = this.#readings(meterId);
    for await (const { columns, strays } of walk) {
      this.#answersReadings = true;
      addTo(found, 'intervals', strays, strays.length);
      const compared = await compareIntervals(this.#warehouse, meterId, columns, this.#since);
      addTo(found, 'intervals', compared.differences, compared.keys);
      keys = joinKeys(keys, compared);
      missing += compared.differences.filter((difference) => difference.state === 'missing').length;
      if (this.#repairer !== null && compared.differences.length > 0) {
        const ids = compared.differences.map(({ id }) => id);
        missing -= await this.#repairer.rewriteReadings(meterId, columns, ids, beganAt);
      }
    }
    const doubt = walk.doubt();
    const repeated = walk.repeated();
    if (doubt !== undefined) return { doubt };
    // A reading that two pages have is counted twice, and would make up for an extra one.
    if (!keys.overlap && (await countIntervals(db, meterId, this.#since)) === keys.keys - missing)
      return { doubt, repeated };
    const again = this.#readings(meterId);
    const extra = await extraReadings(db, meterId, columnsOf(again), this.#since);
    if (again.doubt() !== undefined) return { doubt: again.doubt() };
    if (again.repeated() && !repeated) return { doubt: 'a reading came on two pages' };
    addTo(found, 'intervals', extra, 0);
    if (this.#repairer !== null) {
      const ids = extra.map(({ id }) => id);
      await removeReadings(db, meterId, ids, beganAt);
    }
    return { doubt, repeated };
  }

  #readings(meterId: string): ReadingsWalk {
    const params = this.#since === null ? { meterId } : { meterId, start: this.#since };
    return walkReadings(meterId, this.#pages('intervals', params));
  }

  /**
   * Reads a listing, again while it contradicts or repeats itself, as it may have changed meanwhile: the last pass
   * counts. A repair counts what each pass found. A listing that never agrees with itself is suspect.
   */
  async #read<P extends Pass>(listing: Listing, pass: (found: AuditReport) => Promise<P>): Promise<P> {
    for (let passes = 1; ; passes++) {
      const found = emptyReport();
      const read = await pass(found);
      const isSure = read.doubt === undefined && read.repeated !== true;
      const isLast = isSure || passes === attemptPolicy.passesMax;
      if (isLast || this.#repairer !== null) this.#add(found, listing.companyId);
      if (!isLast) continue;
      if (read.doubt !== undefined) this.#suspect(listing, read.doubt);
      return read;
    }
  }

  #pages(endpoint: EndpointName, params: Record<string, string>): Walk {
    const options = { client: this.#service, endpoint, params, lane: 'backfill' } as const;
    return walkPages({ ...options, signal: this.#signal, judged: endpoint !== 'intervals' });
  }

  async #compare(
    found: AuditReport,
    resource: RecordResource,
    companyId: string | null,
    page: ReadPage,
    ids: readonly (string | null)[] = page.ids,
  ): Promise<void> {
    const { readAt } = page;
    const record = { body: page.body, itemsKey: page.itemsKey, companyId, apiVersion: '', readAt };
    const differences = await comparePage(this.#warehouse.db, resource, record, page.ids, this.#since);
    addTo(found, resource, differences, ids.length);
    if (this.#repairer === null || differences.length === 0) return;
    const different = differences.map(({ id }) => id);
    await forgetVersions(this.#warehouse.db, resource, different, readAt);
    await this.#repairer.rewrite(resource, companyId, page);
  }

  /** Adds differences to the report. @param companyId the company that was compared; null for all */
  #count(resource: AuditResource, differences: readonly Found[], companyId: string | null = null): void {
    const found = emptyReport();
    addTo(found, resource, differences, 0);
    this.#add(found, companyId);
  }

  #add(found: AuditReport, companyId: string | null): void {
    if (companyId !== null && found.differences > 0) this.different.add(companyId);
    addReport(this.report, found);
  }

  /** Reports a listing once: that of a company's meters is read twice. */
  #suspect({ resource, id, companyId }: Listing, reason: string): void {
    const key = `${resource} ${id}`;
    this.#ownerless.delete(resource);
    if (resource === 'meters') this.#ownerless.delete('intervals');
    if (!this.#suspects.has(key)) this.#count(resource, [{ id, state: 'suspect', reason }], companyId);
    this.#suspects.add(key);
  }
}
