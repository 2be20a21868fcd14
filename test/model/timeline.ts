import { isDeepStrictEqual } from 'node:util';
import type { Change, Records } from './changes.ts';
import type { Service } from './service.ts';

/** Listings of companies, each with the resource whose records it shows. */
const listings = [
  ['/connection/company', 'connections'],
  ['/meter/company', 'meters'],
  ['/document/company', 'documents'],
  ['/usage/company', 'usageData'],
] as const;
export type Listed = (typeof listings)[number][1];

export interface RecordOfService {
  readonly id: string;
  readonly [field: string]: unknown;
}

/** The records of the service, with the companies whose listings show them, and what they show. */
export type Truth = Readonly<Record<Listed, ReadonlyMap<string, ReadonlyMap<string, RecordOfService>>>>;

/** What the service has. */
export async function truthOf(service: Service, companies: readonly string[]): Promise<Truth> {
  const all: [Listed, Map<string, Map<string, RecordOfService>>][] = [];
  const listed = await service.list<RecordOfService>('/company');
  const present = companies.filter((id) => listed.some((company) => company.id === id));
  for (const [path, resource] of listings) {
    const records = new Map<string, Map<string, RecordOfService>>();
    for (const company of present)
      for (const record of await service.list<RecordOfService>(`${path}/${company}`))
        records.set(record.id, (records.get(record.id) ?? new Map()).set(company, record));
    all.push([resource, records]);
  }
  return Object.fromEntries(all) as unknown as Truth;
}

/** The states that each record of the service has had, in their order. */
export class Timeline {
  /** Whether a later read cannot show an earlier state. */
  isOrdered = true;
  /** Whether the service went back, or its answers lag so far behind that this looks as if it did. */
  goesBack = false;
  readonly #service: Service;
  readonly #records: Records;
  readonly #states = new Map<string, RecordOfService[]>();

  constructor(service: Service, records: Records) {
    this.#service = service;
    this.#records = records;
  }

  /** Notes the present states, after a change. */
  async note(change?: Change): Promise<void> {
    // A silent change keeps the time of the record, and what two companies list may differ.
    if (change !== undefined && (('silent' in change && change.silent) || change.how === 'list twice'))
      this.isOrdered = false;
    const truth = await truthOf(this.#service, this.#records.companies);
    for (const [resource, records] of Object.entries(truth))
      for (const [id, shown] of records)
        for (const record of shown.values()) this.#add(`${resource}/${id}`, record);
  }

  #add(key: string, record: RecordOfService): void {
    const states = this.#states.get(key) ?? [];
    this.#states.set(key, states);
    if (!isDeepStrictEqual(states.at(-1), record)) states.push(record);
  }

  /** The places of states of a row in the timeline of its record; -1 for one that the record never had. */
  placesOf(resource: Listed, id: string, states: readonly unknown[]): number[] {
    const had = this.#states.get(`${resource}/${id}`) ?? [];
    let from = 0;
    return states.map((state) => {
      const later = had.findIndex((one, at) => at >= from && isDeepStrictEqual(one, state));
      const at = later === -1 ? had.findIndex((one) => isDeepStrictEqual(one, state)) : later;
      from = Math.max(from, at);
      return at;
    });
  }
}
