import type { ListingPass } from '../../activities/reading/listing-pass.ts';
import { rewrite, usageSource } from '../../activities/reading/page-write.ts';
import type { EndpointName } from '../../contract/endpoints.ts';
import { canonicalId } from '../../contract/values.ts';
import type { Executor, Warehouse } from '../../db/connection/connect.ts';
import type { Listing } from '../../db/deletes/absence.ts';
import { retireAbsent } from '../../db/deletes/absent.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import type { ReadRange } from '../../db/readings/ranges.ts';
import { replaceReadings } from '../../db/readings/replace.ts';
import { forgetListed } from '../../db/records/also-listed.ts';
import { itemTexts } from '../../db/records/page.ts';
import { noteRepair } from '../../db/records/repair.ts';
import { isListedByCompany, type RecordResource } from '../../db/resources.ts';
import type { ServiceClient } from '../../service/client.ts';
import { idsOf, type Page } from '../../service/page.ts';
import { judgePass } from '../../service/stability.ts';
import type { Walk } from '../../service/walk.ts';

interface RepairOptions {
  readonly warehouse: Warehouse;
  readonly service: ServiceClient;
  readonly configured?: readonly string[] | undefined;
  /** Deletions are noted under this id. */
  readonly runId: string;
  readonly apiVersion: string;
  /** Begins a walk over a listing. */
  readonly pages: (endpoint: EndpointName, params: Record<string, string>) => Walk;
}

/** Writes rows that differ as the service has them, and tombstones rows that it does not have. */
export class Repairer {
  readonly #options: RepairOptions;

  constructor(options: RepairOptions) {
    this.#options = options;
  }

  /** Writes a page as the service sent it. Listings of companies, with their sites, have no owner. */
  async rewrite(resource: RecordResource, companyId: string | null, page: ReadPage): Promise<void> {
    const { warehouse, service, apiVersion } = this.#options;
    const listing = listingOf(resource);
    const owner = listing === 'companies' ? null : companyId;
    const arrival = { listing, companyId: owner, readAt: page.readAt, page, ...usageSource(service) };
    if (owner !== null) await noteRepair(warehouse.db, owner);
    await rewrite(warehouse, apiVersion, arrival);
  }

  /** Writes all pages of a listing again. Returns the ids of its records; undefined if it is in doubt or empty. */
  async rewriteAll(
    resource: RecordResource,
    companyId: string | null,
    params: Record<string, string>,
  ): Promise<string[] | undefined> {
    const seen: string[] = [];
    const walk = this.#options.pages(listingOf(resource), params);
    for await (const page of dated(this.#options.warehouse.db, walk)) {
      await this.rewrite(resource, companyId, page);
      seen.push(...(resource === 'sites' ? page.items.flatMap(siteIds) : present(page.ids)));
    }
    return walk.report().rows === 0 || doubtOf(walk) !== undefined ? undefined : seen;
  }

  /** Replaces the readings of a range by those of a proved pass. */
  async replaceReadings(meterId: string, range: ReadRange, { readAt, pages }: ListingPass): Promise<void> {
    const { warehouse, runId } = this.#options;
    await replaceReadings(warehouse, { meterId, range, runId, readAt, pages, cap: null, proof: 'proved' });
  }

  /** Walks once more, as records may move. Tombstones those that no pass saw and no other company lists. */
  async retire(
    listing: Listing,
    params: Record<string, string>,
    seen: readonly string[],
    beganAt: string,
  ): Promise<void> {
    const again = await this.rewriteAll(listing.resource, listing.companyId, params);
    if (again === undefined) return;
    const ids = [...seen, ...again];
    const { resource, companyId } = listing;
    if (companyId !== null && isListedByCompany(resource))
      await forgetListed(this.#options.warehouse.db, { resource, companyId }, { ids, beganAt });
    await this.retireAbsent(listing, ids, beganAt);
  }

  /** Tombstones the rows of a listing that are not among the ids. */
  async retireAbsent(listing: Listing, ids: readonly string[], beganAt: string): Promise<void> {
    const { warehouse, configured = [], runId } = this.#options;
    const noCap = { rows: Number.MAX_SAFE_INTEGER, percent: 100 };
    await retireAbsent(warehouse.db, runId, { configured, ...listing }, { ids, beganAt }, noCap);
  }
}

/** The listing that shows a resource: records of companies contain their sites. */
export const listingOf = <R extends string>(resource: R | 'sites'): R | 'companies' =>
  resource === 'sites' ? 'companies' : resource;

/** A page of a walk, with the warehouse's time before its request. */
export type ReadPage = Pick<Page, 'body' | 'itemsKey' | 'items' | 'ids'> & { readonly readAt: string };

export async function* dated(db: Executor, walk: Walk): AsyncGenerator<ReadPage> {
  let readAt = await warehouseNow(db);
  for await (const page of walk) {
    yield { ...page, readAt };
    readAt = await warehouseNow(db);
  }
}

/** Returns why a walk may not show what the service has, by the rules of a backfill; else undefined. */
export function doubtOf(walk: Walk): string | undefined {
  const { stable, reasons } = judgePass(walk.report().manifest);
  return stable ? undefined : reasons.join('; ');
}

export const present = (ids: readonly (string | null)[]): string[] => ids.filter((id) => id !== null);

export function siteIds(company: unknown): string[] {
  const sites = (company as { sites?: unknown } | null)?.sites;
  return Array.isArray(sites) ? present(idsOf(sites)) : [];
}

/** Reduces a page to one company, in the text that the service sent. */
export function onlyCompany(page: ReadPage, companyId: string): ReadPage {
  const texts = itemTexts(page);
  const places = [...page.ids.keys()].filter((place) => page.ids[place] === canonicalId(companyId));
  return {
    body: `[${places.map((place) => texts[place]).join(',')}]`,
    itemsKey: null,
    items: places.map((place) => page.items[place]),
    ids: places.map(() => companyId),
    readAt: page.readAt,
  };
}
