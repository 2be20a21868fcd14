import { randomUUID } from 'node:crypto';
import pMap from 'p-map';
import PQueue from 'p-queue';
import {
  type AuditResource,
  auditResources,
  type CompanyResource,
  companyResources,
  type EndpointName,
} from '../../contract/endpoints.ts';
import { canonicalId } from '../../contract/values.ts';
import type { Executor, Warehouse } from '../../db/connection/connect.ts';
import { readKeptBy } from '../../db/deletes/list-rows.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { compareUsageOfRecords } from '../../db/read/compare-parts.ts';
import { comparePage, eventsBehind, refusals } from '../../db/read/compare-records.ts';
import {
  liveCompanies,
  ownerlessRows,
  type StrayRow,
  strayRows,
  unlistedCompanies,
  unlistedRows,
} from '../../db/read/extra-rows.ts';
import { forgetListed } from '../../db/records/also-listed.ts';
import { clearVersions, forgetDigests } from '../../db/records/repair.ts';
import type { RecordResource } from '../../db/resources.ts';
import type { ServiceClient } from '../../service/client.ts';
import { type Walk, walkPages } from '../../service/walk.ts';
import { MeterAudit } from './readings.ts';
import {
  dated,
  doubtOf,
  listingOf,
  onlyCompany,
  present,
  type ReadPage,
  Repairer,
  siteIds,
} from './repairer.ts';
import { type AuditedListing, type AuditReport, addTo, type Example, Tally } from './tally.ts';

export type { AuditReport, Example } from './tally.ts';

export interface AuditOptions {
  readonly warehouse: Warehouse;
  readonly service: ServiceClient;
  /** Number of listings that are read at the same time; each needs a connection of the warehouse's pool. */
  readonly concurrency: number;
  readonly companyId?: string | undefined;
  /** Companies of the settings. They count as living even if the service does not list them. */
  readonly configured?: readonly string[] | undefined;
  /** Only these resources are compared; all if absent. */
  readonly resources?: readonly AuditResource[] | undefined;
  /** ISO time: compares what changed or started since then, and completely what has no time of change. */
  readonly since?: string | undefined;
  /** After how many ms a listing that differs is read again: events may be on their way. Not for repairs. */
  readonly settleMs?: number | undefined;
  readonly onProgress?: (progress: { companies: number; compared: number }) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Compares the service with the warehouse, changing nothing. A change that takes longer than `settleMs` to
 * arrive is a difference. A listing that the service refuses to show counts as a difference, too. Memory holds
 * ids (8 bytes a reading) and a page of each listing that is being read.
 */
export async function audit(options: AuditOptions): Promise<AuditReport> {
  return await run(new Auditor(options, null), options);
}

/**
 * Audits, and writes rows that differ again as the service has them, even over a newer version. Tombstones
 * rows that two passes do not contain (`metersync deletes undo` takes that back), and removes readings that
 * the service does not have. Leaves alone rows that changed meanwhile. The report holds the differences that
 * were found; deletions are noted under `runId`.
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
    const { report } = auditor.tally;
    const companies = await auditor.companies(options.companyId);
    const isFull = options.companyId === undefined && options.since === undefined;
    if (isFull) await auditor.noteOwnerless();
    await pMap(companies, (companyId) => auditor.company(companyId), { concurrency: options.concurrency });
    if (isFull) await auditor.strays();
    report.examples = await explain(options.warehouse.db, report.examples);
    if (report.kept.rows > 0)
      report.kept.decisions = await readKeptBy(options.warehouse.db, options.companyId);
    return report;
  } catch (error) {
    await auditor.stop(error);
    throw error;
  }
}

class Auditor {
  readonly tally: Tally;
  readonly #options: AuditOptions;
  readonly #resources: readonly AuditResource[];
  readonly #since: string | null;
  readonly #repairer: Repairer | null;
  readonly #meters: MeterAudit;
  /** Queue of all walks over listings, each with its work on the warehouse. */
  readonly #walks: PQueue;
  readonly #stopped = new AbortController();
  readonly #signal: AbortSignal;
  /** When the audit began, by the warehouse's clock; undefined if the list of companies is suspect. */
  #beganAt: string | undefined;
  #companiesDone = 0;

  constructor(options: AuditOptions, repair: { readonly runId: string; readonly apiVersion: string } | null) {
    const { concurrency, signal, settleMs = 0 } = options;
    this.#options = options;
    this.#resources = options.resources ?? auditResources;
    this.#since = options.since ?? null;
    this.#walks = new PQueue({ concurrency });
    this.#signal = AbortSignal.any([this.#stopped.signal, ...(signal ? [signal] : [])]);
    const pages = (endpoint: EndpointName, params: Record<string, string>) => this.#pages(endpoint, params);
    this.#repairer = repair === null ? null : new Repairer({ ...options, ...repair, pages });
    const tally = new Tally({ repairs: repair !== null, settleMs, signal: this.#signal });
    this.tally = tally;
    this.#meters = new MeterAudit({ ...options, tally, repairer: this.#repairer, since: this.#since, pages });
  }

  get #warehouse(): Warehouse {
    return this.#options.warehouse;
  }

  get #service(): ServiceClient {
    return this.#options.service;
  }

  get #configured(): readonly string[] {
    return this.#options.configured ?? [];
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
      this.tally.companies = new Set(await liveCompanies(db));
      return only === undefined ? [...this.tally.companies] : [only];
    }
    const wanted = (['companies', 'sites'] as const).filter((resource) => this.#resources.includes(resource));
    const listing = { resource: 'companies', id: only ?? 'all' } as const;
    const { beganAt, all, ids, sites, doubt } = await this.tally.read(listing, async (found) => {
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
      // A single company is complete on its page, so doubts about other pages do not matter.
      const doubt = only !== undefined && ids.length > 0 ? undefined : doubtOf(walk);
      return { beganAt, all, ids, sites, doubt };
    });
    if (doubt === undefined) this.#beganAt = beganAt;
    const unlisted = (await unlistedCompanies(db, this.#configured)).filter(({ id }) => !all.includes(id));
    const unlistedIds = unlisted.map(({ id }) => id);
    this.tally.companies = new Set([...all, ...unlisted.flatMap(({ id, wasRead }) => (wasRead ? id : []))]);
    for (const resource of doubt === undefined ? wanted : []) {
      const seen = resource === 'sites' ? sites : ids;
      const extra = this.tally.extra(
        resource,
        only ?? null,
        await unlistedRows(db, resource, only ?? null, seen, { unlisted: unlistedIds }),
      );
      this.tally.count(resource, extra);
      if (this.#repairer === null || extra.length === 0) continue;
      const listing = { resource, companyId: only ?? null };
      if (resource === 'sites')
        await this.#repairer.retire({ ...listing, configured: unlistedIds }, {}, seen, beganAt);
      else if (only === undefined) await this.#repairer.retire(listing, {}, seen, beganAt);
    }
    return only === undefined ? [...this.tally.companies] : [only];
  }

  /** Compares listings in turn, because a repair may write rows of another one, and then meters at once. */
  async company(companyId: string): Promise<void> {
    for (const resource of this.#compared()) {
      if (resource === 'intervals') continue;
      await this.#inTurn({ resource, id: companyId }, () => this.#listing(resource, companyId));
    }
    // Without a listing of usage, the records of documents are its source: see `usageSource`.
    if (!this.#service.has('usageData') && this.#compared().includes('documents') && this.#since === null)
      await this.#usageOfRecords(companyId);
    if (this.#compared().includes('intervals')) {
      const listing = { resource: 'meters', id: companyId } as const;
      const meters = (await this.#inTurn(listing, () => this.#meters.metersOf(companyId))) ?? [];
      const compare = (id: string) =>
        this.#inTurn({ resource: 'intervals', id }, () => this.#meters.compare(id));
      await pMap(meters, compare, { concurrency: this.#options.concurrency });
    }
    this.#companiesDone += 1;
    this.#progress();
  }

  /** Compares the usage that a company's documents list. A repair has the next backfill write what differs. */
  async #usageOfRecords(companyId: string): Promise<void> {
    if (!this.#resources.includes('usageData')) return;
    const { db } = this.#warehouse;
    const { listed, unequal } = await compareUsageOfRecords(db, companyId);
    if (this.#repairer !== null && unequal.length > 0)
      await forgetDigests(db, [...new Set(unequal.map(({ documentId }) => documentId))]);
    const found = unequal.map(({ id, state }) => ({ id, state }));
    addTo(this.tally.report, 'usageData', found, listed);
  }

  /** The resources of companies that are compared. */
  #compared(): CompanyResource[] {
    return companyResources.filter((name) => this.#service.has(name) && this.#resources.includes(name));
  }

  /** Notes rows without a company, before listings are read that may show them. */
  async noteOwnerless(): Promise<void> {
    for (const resource of this.#compared())
      this.tally.ownerless.set(resource, new Set(await ownerlessRows(this.#warehouse.db, resource)));
  }

  /**
   * Counts live rows as extra if their company was not read: it is gone or has no row, or is not named. A
   * repair reads the list of companies once more, and tombstones the rows of companies that are not in it.
   */
  async strays(): Promise<void> {
    if (this.#beganAt === undefined) return;
    const { db } = this.#warehouse;
    const audited = [...this.tally.companies, ...this.#configured.map(canonicalId)];
    const found: { resource: CompanyResource; rows: readonly StrayRow[] }[] = [];
    for (const resource of this.#compared()) {
      const ownerless = [...(this.tally.ownerless.get(resource) ?? [])];
      const rows = await strayRows(db, resource, audited);
      rows.push(...ownerless.map((id) => ({ id, companyId: null, kept: false })));
      this.tally.count(
        resource,
        rows.map(({ id, kept }) => ({ id, state: kept ? 'kept' : 'extra' })),
      );
      if (rows.length > 0) found.push({ resource, rows });
    }
    if (this.#repairer === null || found.length === 0 || !this.#service.has('companies')) return;
    const again = await this.#repairer.rewriteAll('companies', null, {});
    if (again === undefined) return;
    for (const { resource, rows } of found) {
      const gone = rows.filter(({ companyId }) => companyId === null || !again.includes(companyId));
      // Readings are deleted with their meter.
      const retired = resource === 'intervals' ? 'meters' : resource;
      for (const companyId of new Set(gone.map((row) => row.companyId))) {
        const none = { ids: [], beganAt: this.#beganAt };
        if (companyId !== null) await forgetListed(db, { resource: retired, companyId }, none);
        await this.#repairer.retireAbsent({ resource: retired, companyId }, [], this.#beganAt);
      }
    }
  }

  /** Walks over a listing when it is its turn; undefined if the service refuses to show it. */
  async #inTurn<T>(listing: AuditedListing, walk: () => Promise<T>): Promise<T | undefined> {
    return await this.#walks.add(async () => {
      this.#signal.throwIfAborted();
      const result = await this.tally.unlessRefused(listing, walk);
      this.#progress();
      return result;
    });
  }

  #progress(): void {
    this.#options.onProgress?.({ companies: this.#companiesDone, compared: this.tally.report.compared });
  }

  async #listing(resource: Exclude<RecordResource, 'sites' | 'companies'>, companyId: string): Promise<void> {
    const { db } = this.#warehouse;
    const params = { companyId };
    const { beganAt, seen, doubt, unlisted } = await this.tally.read(
      { resource, id: companyId },
      async (found) => {
        const beganAt = await warehouseNow(db);
        const seen: string[] = [];
        const walk = this.#pages(resource, params);
        for await (const page of dated(db, walk)) {
          await this.#compare(found, resource, companyId, page);
          seen.push(...present(page.ids));
          for (const id of present(page.ids)) this.tally.ownerless.get(resource)?.delete(id);
        }
        const doubt = doubtOf(walk);
        const unlisted =
          doubt === undefined
            ? await unlistedRows(db, resource, companyId, seen, { since: this.#since })
            : [];
        return { beganAt, seen, doubt, unlisted };
      },
    );
    if (doubt !== undefined) return;
    const extra = this.tally.extra(resource, companyId, unlisted);
    this.tally.count(resource, extra);
    // Another company may still list some of these. A record is tombstoned when no company lists it.
    if (this.#repairer !== null && unlisted.length > 0)
      await this.#repairer.retire({ resource, companyId }, params, seen, beganAt);
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
    const compared = await comparePage(this.#warehouse.db, resource, record, page.ids, this.#since);
    const { differences, unreadable } = compared;
    addTo(found, resource, differences, ids.length, unreadable);
    if (this.#repairer === null || differences.length === 0) return;
    const different = differences.map(({ id }) => id);
    await clearVersions(this.#warehouse.db, resource, different, readAt);
    await this.#repairer.rewrite(resource, companyId, page);
  }
}

/** Returns examples with the events behind them, and Postgres's reasons for refused records. */
async function explain(db: Executor, examples: readonly Example[]): Promise<Example[]> {
  const recordOf = ({ id, resource }: Example) => (resource === 'intervals' ? id.replace(/@[^@]*$/, '') : id);
  const events = await eventsBehind(db, [...new Set(examples.map(recordOf))]);
  // Sites are part of the record of their company, so they are refused with it.
  const refusalOf = ({ id, resource }: Example) => ({ id, resource: listingOf(resource) });
  const missing = examples.filter(({ state }) => state === 'missing');
  const refused = await refusals(db, missing.map(refusalOf));
  return examples.map((example) => {
    const { resource, id } = refusalOf(example);
    return {
      ...example,
      events: events.get(recordOf(example)) ?? [],
      refused: refused.get(`${resource} ${id}`),
    };
  });
}
