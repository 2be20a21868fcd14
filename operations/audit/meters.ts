import type { EndpointName } from '../../contract/endpoints.ts';
import { metersAfter } from '../../db/backfill/order.ts';
import { warehouseNow } from '../../db/catch-up/due.ts';
import type { Warehouse } from '../../db/connect.ts';
import {
  compareIntervals,
  countIntervals,
  extraReadings,
  joinKeys,
  noKeys,
  unlistedMeters,
} from '../../db/read/compare-readings.ts';
import { removeReadings } from '../../db/records/repair.ts';
import type { ServiceClient } from '../../service/client.ts';
import type { Walk } from '../../service/walk.ts';
import { doubtOf, present } from './listing.ts';
import { columnsOf, type ReadingsWalk, walkReadings } from './readings.ts';
import type { Repairer } from './repairer.ts';
import { type AuditReport, addTo } from './report.ts';
import type { Pass, Tally } from './tally.ts';

/** Compares the readings of meters. */
export class MeterAudit {
  readonly #warehouse: Warehouse;
  readonly #service: ServiceClient;
  readonly #tally: Tally;
  readonly #repairer: Repairer | null;
  readonly #since: string | null;
  readonly #pages: (endpoint: EndpointName, params: Record<string, string>) => Walk;
  /** Meters that no listing has, with readings in the warehouse. */
  readonly #unlisted = new Set<string>();
  /** Whether the service answered for the readings of any meter. */
  #answers = false;

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
    // An empty listing is likelier a fault.
    if (meters.size > 0) for (const { id } of extra) this.noteUnlisted(id);
    return meters;
  }

  /** Compares the readings of a meter. */
  async compare(companyId: string, meterId: string): Promise<void> {
    const listing = { resource: 'intervals', id: meterId, companyId } as const;
    await this.#tally.read(listing, (found) => this.#pass(found, meterId));
  }

  /** Notes a meter that no listing has. */
  noteUnlisted(meterId: string): void {
    this.#unlisted.add(meterId);
  }

  /** Lets a repair remove the readings of meters that no listing has. */
  async removeUnlisted(beganAt: string): Promise<void> {
    if (this.#repairer === null || this.#since !== null) return;
    for (const meterId of this.#unlisted)
      await this.#repairer.removeUnlisted(meterId, beganAt, { answers: this.#answers });
  }

  async #pass(found: AuditReport, meterId: string): Promise<Pass> {
    const { db } = this.#warehouse;
    const beganAt = await warehouseNow(db);
    let keys = noKeys;
    let missing = 0;
    const walk = this.#readings(meterId);
    for await (const { columns, strays } of walk) {
      this.#answers = true;
      addTo(found, 'intervals', strays, strays.length);
      const compared = await compareIntervals(this.#warehouse, meterId, columns, this.#since);
      addTo(found, 'intervals', compared.differences, compared.keys, compared.unreadable);
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
    if (this.#repairer !== null && extra.length > 0) {
      const ids = extra.map(({ id }) => id);
      await removeReadings(db, meterId, ids, beganAt);
    }
    return { doubt, repeated };
  }

  #readings(meterId: string): ReadingsWalk {
    const params = this.#since === null ? { meterId } : { meterId, start: this.#since };
    return walkReadings(meterId, this.#pages('intervals', params));
  }
}
