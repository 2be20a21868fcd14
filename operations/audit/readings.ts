import { readPass, showsAllOf } from '../../activities/reading/listing-pass.ts';
import type { EndpointName } from '../../contract/endpoints.ts';
import { metersAfter } from '../../db/backfill/run-companies.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { compareReadings } from '../../db/read/compare-parts.ts';
import { unlistedMeters } from '../../db/read/extra-rows.ts';
import type { ReadRange } from '../../db/readings/ranges.ts';
import { refusedAs } from '../../db/records/rejected.ts';
import type { ServiceClient } from '../../service/client.ts';
import type { Walk } from '../../service/walk.ts';
import { doubtOf, present, type Repairer } from './repairer.ts';
import { type AuditReport, addTo, type Pass, type Tally } from './tally.ts';

interface MeterAuditOptions {
  readonly warehouse: Warehouse;
  readonly service: ServiceClient;
  readonly tally: Tally;
  readonly repairer: Repairer | null;
  /** ISO time: compares only readings that start since then; null for all. */
  readonly since: string | null;
  readonly pages: (endpoint: EndpointName, params: Record<string, string>) => Walk;
}

/** Compares the readings of meters. */
export class MeterAudit {
  readonly #options: MeterAuditOptions;

  constructor(options: MeterAuditOptions) {
    this.#options = options;
  }

  /** Returns the listed meters, or without a listing the warehouse's. Counts unlisted readings as extra. */
  async metersOf(companyId: string): Promise<Set<string>> {
    const { db } = this.#options.warehouse;
    if (!this.#options.service.has('meters'))
      return new Set(await metersAfter(db, companyId, null, Number.MAX_SAFE_INTEGER));
    const listing = { resource: 'meters', id: companyId } as const;
    const { meters, doubt } = await this.#options.tally.read(listing, async () => {
      const meters = new Set<string>();
      const walk = this.#options.pages('meters', { companyId });
      for await (const page of walk) for (const id of present(page.ids)) meters.add(id);
      return { meters, doubt: doubtOf(walk) };
    });
    for (const id of meters) this.#options.tally.ownerless.get('intervals')?.delete(id);
    if (doubt !== undefined) return meters;
    const unlisted = await unlistedMeters(db, companyId, [...meters]);
    const extra = this.#options.tally.extra('intervals', companyId, unlisted);
    this.#options.tally.count('intervals', extra);
    return meters;
  }

  async compare(meterId: string): Promise<void> {
    await this.#options.tally.read({ resource: 'intervals', id: meterId }, (found) =>
      this.#pass(found, meterId),
    );
  }

  /** Reads and compares the listing; once more if it differs, as readings may move between its pages. */
  async #pass(found: AuditReport, meterId: string): Promise<Pass> {
    const read = () => readPass(this.#options.warehouse, meterId, () => this.#walk(meterId));
    const pass = await read();
    const doubt = pass.doubt ?? (pass.grew ? 'the total changed between pages' : undefined);
    if (doubt !== undefined) return { doubt };
    const { differences, readings, unreadable } = await compareReadings(this.#options.warehouse.db, {
      meterId,
      readAt: pass.readAt,
      range: this.#range,
      pages: pass.pages,
    });
    if (differences.length > 0 && pass.sent.pages > 1 && (pass.shifted || !showsAllOf(await read(), pass)))
      return { doubt: 'its pages contradict one another' };
    const missing = pass.refused.map((one) => ({ id: refusedAs(one), state: 'missing' as const }));
    addTo(found, 'intervals', [...missing, ...differences], readings + missing.length, unreadable);
    if (differences.length > 0) await this.#options.repairer?.replaceReadings(meterId, this.#range, pass);
    return { doubt: undefined };
  }

  get #range(): ReadRange {
    return this.#options.since === null ? {} : { start: this.#options.since };
  }

  #walk(meterId: string): Walk {
    const params = this.#options.since === null ? { meterId } : { meterId, start: this.#options.since };
    return this.#options.pages('intervals', params);
  }
}
