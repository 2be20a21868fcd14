import { type AuditResource, auditResources } from '../contract/names.ts';
import type { Warehouse } from '../db/connect.ts';
import {
  compareIntervals,
  comparePage,
  countIntervals,
  type Difference,
  extraRows,
  knownCompanies,
  metersWithReadings,
  type RecordResource,
} from '../db/read/audit.ts';
import type { ServiceClient } from '../service/client.ts';
import { readIntervals } from '../service/intervals.ts';
import { walkPages } from '../service/walk.ts';

export interface ResourceAudit {
  compared: number;
  missing: number;
  extra: number;
  different: number;
}

export interface AuditReport {
  compared: number;
  differences: number;
  resources: Record<AuditResource, ResourceAudit>;
  /** The first differences, for a person to look at. */
  examples: (Difference & { resource: AuditResource })[];
}

const examplesMax = 50;

/**
 * Reads the service again and compares it with the warehouse, changing nothing. What changes at the service
 * meanwhile shows as a difference: audit a quiet one. `companyId` limits it to one company.
 */
export async function audit(options: {
  warehouse: Warehouse;
  service: ServiceClient;
  companyId?: string | undefined;
  onProgress?: (progress: { companies: number; compared: number }) => void;
  signal?: AbortSignal | undefined;
}): Promise<AuditReport> {
  const auditor = new Auditor(options.warehouse, options.service, options.signal);
  const companies = await auditor.companies(options.companyId);
  let done = 0;
  for (const companyId of companies) {
    await auditor.company(companyId);
    done += 1;
    options.onProgress?.({ companies: done, compared: auditor.report.compared });
  }
  return auditor.report;
}

class Auditor {
  readonly report: AuditReport;
  readonly #warehouse: Warehouse;
  readonly #service: ServiceClient;
  readonly #signal: AbortSignal | undefined;

  constructor(warehouse: Warehouse, service: ServiceClient, signal: AbortSignal | undefined) {
    this.#warehouse = warehouse;
    this.#service = service;
    this.#signal = signal;
    const none = () => ({ compared: 0, missing: 0, extra: 0, different: 0 });
    const resources = Object.fromEntries(auditResources.map((name) => [name, none()]));
    this.report = {
      compared: 0,
      differences: 0,
      resources: resources as AuditReport['resources'],
      examples: [],
    };
  }

  /** Compares the list of companies and their sites; returns the companies to go on with. */
  async companies(only: string | undefined): Promise<string[]> {
    if (!this.#service.has('companies')) {
      return only === undefined ? await knownCompanies(this.#warehouse.db) : [only];
    }
    const ids: string[] = [];
    const sites: string[] = [];
    for await (const page of this.#walk('companies', {})) {
      const chosen = only === undefined ? page : onlyCompany(page, only);
      await this.#compare('companies', null, chosen);
      await this.#compare('sites', null, chosen, chosen.items.flatMap(siteIds));
      ids.push(...present(chosen.ids));
      sites.push(...chosen.items.flatMap(siteIds));
    }
    await this.#extra('companies', only ?? null, ids);
    await this.#extra('sites', only ?? null, sites);
    return only === undefined ? ids : [only];
  }

  async company(companyId: string): Promise<void> {
    let meters: string[] = [];
    for (const resource of ['connections', 'documents', 'usageData', 'meters'] as const) {
      if (!this.#service.has(resource)) continue;
      const seen: string[] = [];
      for await (const page of this.#walk(resource, { companyId })) {
        await this.#compare(resource, companyId, page);
        seen.push(...present(page.ids));
      }
      await this.#extra(resource, companyId, seen);
      if (resource === 'meters') meters = seen;
    }
    if (!this.#service.has('intervals')) return;
    for (const meterId of meters) await this.#meter(meterId);
    const gone = (await metersWithReadings(this.#warehouse.db, companyId)).filter(
      (id) => !meters.includes(id),
    );
    for (const meterId of gone) {
      this.#count('intervals', [{ id: meterId, state: 'extra' }], 0);
    }
  }

  async #meter(meterId: string): Promise<void> {
    const { db } = this.#warehouse;
    let keys = 0;
    let missing = 0;
    for await (const page of this.#walk('intervals', { meterId })) {
      const columns = readIntervals(page.body, page.itemsKey, page.items);
      if (columns.startAt.length === 0) continue;
      const compared = await compareIntervals(db, meterId, columns);
      this.#count('intervals', compared.differences, compared.keys);
      keys += compared.keys;
      missing += compared.differences.filter((difference) => difference.state === 'missing').length;
    }
    const extra = (await countIntervals(db, meterId)) - (keys - missing);
    if (extra !== 0) {
      const differences = Array.from({ length: Math.abs(extra) }, () => ({
        id: meterId,
        state: 'extra' as const,
      }));
      this.#count('intervals', differences, 0);
    }
  }

  #walk(endpoint: RecordResource | 'intervals', params: Record<string, string>) {
    if (endpoint === 'sites') throw new Error('sites come with companies');
    return walkPages({ client: this.#service, endpoint, params, lane: 'backfill', signal: this.#signal });
  }

  async #compare(
    resource: RecordResource,
    companyId: string | null,
    page: { body: string; itemsKey: string | null; ids: readonly (string | null)[] },
    ids: readonly (string | null)[] = page.ids,
  ): Promise<void> {
    const record = { body: page.body, itemsKey: page.itemsKey, companyId, apiVersion: '', readAt: '' };
    this.#count(resource, await comparePage(this.#warehouse.db, resource, record), ids.length);
  }

  async #extra(resource: RecordResource, companyId: string | null, seen: readonly string[]): Promise<void> {
    this.#count(resource, await extraRows(this.#warehouse.db, resource, companyId, seen), 0);
  }

  #count(resource: AuditResource, differences: readonly Difference[], compared: number): void {
    const counts = this.report.resources[resource];
    counts.compared += compared;
    this.report.compared += compared;
    this.report.differences += differences.length;
    for (const difference of differences) {
      counts[difference.state] += 1;
      if (this.report.examples.length < examplesMax) this.report.examples.push({ ...difference, resource });
    }
  }
}

type SomePage = {
  body: string;
  itemsKey: string | null;
  items: readonly unknown[];
  ids: readonly (string | null)[];
};

const present = (ids: readonly (string | null)[]): string[] => ids.filter((id) => id !== null);

function siteIds(company: unknown): string[] {
  const sites = (company as { sites?: unknown } | null)?.sites;
  if (!Array.isArray(sites)) return [];
  return sites.flatMap((site: { id?: unknown } | null) => (typeof site?.id === 'string' ? [site.id] : []));
}

/** The same page with one company on it. Its numbers are only compared, as jsonb, never stored. */
function onlyCompany(page: SomePage, companyId: string): SomePage {
  const items = page.items.filter((item) => (item as { id?: unknown } | null)?.id === companyId);
  return { body: JSON.stringify(items), itemsKey: null, items, ids: items.map(() => companyId) };
}
