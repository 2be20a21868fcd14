import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Warehouse } from '../../db/connection/connect.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { writeRecords } from './pages.ts';

/** A usage record of a test. */
export interface UsageSaid {
  readonly meterId: string | null;
  readonly start: string | null;
  readonly end: string | null;
  readonly usage: string | null;
  readonly units?: string;
  readonly more?: object;
}

/** A bill of a test; `billed` orders bills, the newest last. */
export interface BillSaid {
  readonly id?: string;
  readonly billed: number;
  readonly cost?: string;
  readonly currency?: string;
  readonly usage: readonly UsageSaid[];
  readonly more?: object;
}

/** Readings of a meter that follow one another from a time on; by default one of 1 kWh for an hour. */
export interface ReadingsSaid {
  readonly meter: string;
  readonly from: string;
  readonly count?: number;
  readonly seconds?: number;
  readonly usage?: string | number | null;
  readonly units?: string;
  readonly quality?: string | null;
  readonly ordinal?: number;
}

/** A company with a site, meters and bills; each call writes as a read of the API does. */
export class BilledCompany {
  readonly id = randomUUID();
  readonly siteId = randomUUID();
  readonly #warehouse: Warehouse;
  #reads = 0;

  constructor(warehouse: Warehouse) {
    this.#warehouse = warehouse;
  }

  async add(meters: Readonly<Record<string, object>>): Promise<void> {
    const site = { id: this.siteId, name: 'Main street' };
    const company = { id: this.id, name: 'Acme', sites: [site] };
    await this.#write('companies', [company]);
    await this.#write('sites', [company]);
    const records = Object.entries(meters).map(([id, more]) => ({
      id,
      site: this.siteId,
      datasourceType: 'ELECTRICITY',
      ...more,
    }));
    await this.#write('meters', records);
  }

  /** Writes bills, or new states of bills; returns their ids. */
  async bill(bills: readonly BillSaid[]): Promise<string[]> {
    const records = bills.map((said) => {
      const stamp = new Date(Date.UTC(2025, 0, 1) + said.billed * 1000).toISOString().slice(0, -1);
      const id = said.id ?? randomUUID();
      const usageData = said.usage.map((one) => ({
        id: randomUUID(),
        created: stamp,
        updated: stamp,
        meter: one.meterId,
        startDate: one.start,
        endDate: one.end,
        usage: one.usage,
        usageUnits: one.units ?? 'kWh',
        ...one.more,
      }));
      const money = { currentCharges: said.cost, chargesUnits: said.currency ?? 'USD' };
      return { id, created: stamp, updated: stamp, company: this.id, ...money, usageData, ...said.more };
    });
    await this.#write('documents', records);
    return records.map(({ id }) => id);
  }

  /** Inserts readings, in UTC unless their times say otherwise. A reading that is there already stays. */
  async read(...runs: readonly ReadingsSaid[]): Promise<void> {
    const defaults = { count: 1, seconds: 3600, usage: 1, units: 'kWh', quality: 'ACTUAL', ordinal: 0 };
    const rows = JSON.stringify(runs.map((run) => ({ ...defaults, ...run })));
    const readings = sql`
      select r.*, r."from" + n * r.seconds * interval '1 second' as at
      from jsonb_to_recordset(${rows}::jsonb) as r (
          meter text, "from" timestamptz, count int, seconds int, usage numeric, units text, quality text, ordinal int
        ),
        generate_series(0, r.count - 1) n`;
    await this.#warehouse.db.execute(sql`
      select metersync.ensure_interval_month(month)
      from (select distinct date_trunc('month', at, 'UTC') as month from (${readings}) readings) months`);
    await this.#warehouse.db.execute(sql`
      insert into utility.intervals
        (meter_id, start_at, granularity_seconds, usage_units, ordinal, usage, quality, synced_at)
      select meter, at, seconds, units, ordinal, usage, quality, now()
      from (${readings}) readings
      on conflict do nothing`);
  }

  /** Says what the service does not: the time zone of the site. */
  async inZone(zone: string): Promise<void> {
    await this.#warehouse.db.execute(sql`
      insert into ops.site_overrides (site_id, time_zone) values (${this.siteId}::uuid, ${zone})`);
  }

  /** Reads this company's rows of a view. If the view shows months, computes them first. */
  async rows<T = Record<string, unknown>>(view: string, order: string): Promise<T[]> {
    if (/monthly|availability/.test(view)) await keepMonths(this.#warehouse.db, { budgetSeconds: 60 });
    const { rows } = await this.#warehouse.db.execute(
      sql`select * from ${sql.raw(`analytics.${view}`)} where company_id = ${this.id}::uuid order by ${sql.raw(order)}`,
    );
    return rows as T[];
  }

  #write(listing: Parameters<typeof writeRecords>[1], records: readonly object[]) {
    this.#reads++;
    const readAt = new Date(Date.UTC(2026, 5, 1) + this.#reads * 1000).toISOString();
    // The records of its documents are the source of its usage.
    return writeRecords(this.#warehouse, listing, records, { companyId: this.id, readAt }, true);
  }
}
