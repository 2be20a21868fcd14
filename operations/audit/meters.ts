import { readUntilProved } from '../../activities/reading/replace-range.ts';
import type { EndpointName } from '../../contract/endpoints.ts';
import { metersAfter } from '../../db/backfill/order.ts';
import { type Warehouse, withTransaction } from '../../db/connection/connect.ts';
import {
  compareIntervals,
  compareListed,
  countIntervals,
  joinKeys,
  noKeys,
} from '../../db/read/compare-readings.ts';
import { unlistedMeters } from '../../db/read/extra-rows.ts';
import type { ServiceClient } from '../../service/client.ts';
import type { Walk } from '../../service/walk.ts';
import { doubtOf, present } from './listing.ts';
import { walkReadings } from './readings.ts';
import type { Repairer } from './repairer.ts';
import { type AuditReport, addTo } from './report.ts';
import type { Pass, Tally } from './tally.ts';

export class MeterAudit {
  readonly #warehouse: Warehouse;
  readonly #service: ServiceClient;
  readonly #tally: Tally;
  readonly #repairer: Repairer | null;
  readonly #since: string | null;
  readonly #pages: (endpoint: EndpointName, params: Record<string, string>) => Walk;
  constructor(options: {
    readonly warehouse: Warehouse;
    readonly service: ServiceClient;
    readonly tally: Tally;
    readonly repairer: Repairer | null;
    /** ISO time: compares only readings that start since; null for all. */
    readonly since: string | null;
    readonly pages: (endpoint: EndpointName, params: Record<string, string>) => Walk;
  }) {
    this.#warehouse = options.warehouse;
    this.#service = options.service;
    this.#tally = options.tally;
    this.#repairer = options.repairer;
    this.#since = options.since;
    this.#pages = options.pages;
  }

  /**
   * Returns the meters that the service lists; counts unlisted ones with readings in the warehouse as extra.
   * Without a listing of meters, returns those of the warehouse.
   */
  async metersOf(companyId: string): Promise<Set<string>> {
    const { db } = this.#warehouse;
    if (!this.#service.has('meters'))
      return new Set(await metersAfter(db, companyId, null, Number.MAX_SAFE_INTEGER));
    const listing = { resource: 'meters', id: companyId, companyId } as const;
    const { meters, doubt } = await this.#tally.read(listing, async () => {
      const meters = new Set<string>();
      const walk = this.#pages('meters', { companyId });
      for await (const page of walk) for (const id of present(page.ids)) meters.add(id);
      return { meters, doubt: doubtOf(walk) };
    });
    for (const id of meters) this.#tally.ownerless.get('intervals')?.delete(id);
    if (doubt !== undefined) return meters;
    const unlisted = await unlistedMeters(db, companyId, [...meters]);
    const extra = this.#tally.extra('intervals', companyId, unlisted);
    this.#tally.count('intervals', extra, companyId);
    return meters;
  }

  async compare(companyId: string, meterId: string): Promise<void> {
    const listing = { resource: 'intervals', id: meterId, companyId } as const;
    await this.#tally.read(listing, (found) => this.#pass(found, meterId));
  }

  /**
   * Compares page by page at first. Only if a page differs, or the warehouse has other readings than the
   * pages, the listing is read once more and compared as a whole.
   */
  async #pass(found: AuditReport, meterId: string): Promise<Pass> {
    const { db } = this.#warehouse;
    let keys = noKeys;
    let equal = true;
    const walk = walkReadings(meterId, this.#walk(meterId));
    for await (const { columns, strays } of walk) {
      addTo(found, 'intervals', strays, strays.length);
      const compared = await compareIntervals(this.#warehouse, meterId, columns, this.#since);
      const all = compared.keys + compared.refused.length;
      addTo(found, 'intervals', compared.refused, all, compared.unreadable);
      keys = joinKeys(keys, compared);
      equal &&= compared.equal;
    }
    const doubt = walk.doubt();
    if (doubt !== undefined) return { doubt };
    const held = await countIntervals(db, meterId, this.#since);
    if (equal && !keys.overlap && held === keys.keys) return { doubt };
    return await this.#compareAll(found, meterId);
  }

  async #compareAll(found: AuditReport, meterId: string): Promise<Pass> {
    const range = this.#since === null ? {} : { start: this.#since };
    return await withTransaction(this.#warehouse.db, async (tx) => {
      const { proved } = await readUntilProved(tx, this.#warehouse, meterId, {
        walk: () => this.#walk(meterId),
        onPage: async () => undefined,
      });
      if (proved === undefined) return { doubt: 'its pages contradict one another' };
      addTo(found, 'intervals', await compareListed(tx, { meterId, range, pass: proved.pass }), 0);
      await this.#repairer?.replaceReadings(tx, { meterId, range, ...proved });
      return { doubt: undefined };
    });
  }

  #walk(meterId: string): Walk {
    const params = this.#since === null ? { meterId } : { meterId, start: this.#since };
    return this.#pages('intervals', params);
  }
}
