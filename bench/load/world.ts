import { createRandom } from './random.ts';

/** Records of the simulated service, which the warehouse has before the load begins. */
export interface World {
  readonly companies: readonly Company[];
  readonly connections: readonly Connection[];
  /** Grows as documents are created. */
  readonly documents: Document[];
  readonly meters: readonly Meter[];
}

export interface Company {
  readonly externalId: string;
  readonly id: string;
  readonly name: string;
  readonly publicId: string;
  readonly sites: readonly { readonly id: string; readonly name: string }[];
}

export interface Connection {
  readonly id: string;
  readonly company: Company;
  readonly created: string;
  readonly accounts: readonly string[];
  status: string;
}

export interface Document {
  readonly id: string;
  readonly company: Company;
  readonly site: Company['sites'][number];
  readonly created: string;
  updated: string;
}

export interface Meter {
  readonly id: string;
  readonly company: Company;
}

/** Seed of the world and its changes. The generator and the warehouse must have the same world. */
export const worldSeed = 1;

const companiesCount = 120;
const sitesOfCompany = 4;
const connectionsOfCompany = 6;
const documentsOfCompany = 100;
const metersOfCompany = 8;

/** Makes every record from the seed, so that two processes have the same world. */
export function createWorld(seed: number): World {
  const random = createRandom(seed);
  const created = (day: number) =>
    `2026-01-${String(day).padStart(2, '0')}T08:15:30.${random.int(100_000, 999_999)}`;
  const companies = Array.from({ length: companiesCount }, (_, index) => ({
    externalId: `C-${String(index + 1).padStart(5, '0')}`,
    id: random.uuid(),
    name: `Company ${index + 1} of the bench`,
    publicId: random.uuid(),
    sites: Array.from({ length: sitesOfCompany }, (_, site) => ({
      id: random.uuid(),
      name: `Site ${site + 1} of company ${index + 1}`,
    })),
  }));
  const each = <T>(count: number, make: (company: Company) => T): T[] =>
    companies.flatMap((company) => Array.from({ length: count }, () => make(company)));
  return {
    companies,
    connections: each(connectionsOfCompany, (company) => ({
      id: random.uuid(),
      company,
      created: created(random.int(1, 9)),
      accounts: [String(random.int(1e9, 9e9)), String(random.int(1e9, 9e9))],
      status: 'CONNECTED',
    })),
    documents: each(documentsOfCompany, (company) => {
      const at = created(random.int(10, 28));
      return { id: random.uuid(), company, site: random.pick(company.sites), created: at, updated: at };
    }),
    meters: each(metersOfCompany, (company) => ({ id: random.uuid(), company })),
  };
}
