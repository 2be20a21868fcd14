import { withClient } from './stack.ts';

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

/** How often each change is drawn, as in the sandbox: documents, then connections, then intervals. */
const weights = {
  createDocument: 24,
  reprocessDocument: 22,
  deleteDocument: 5,
  syncIntervals: 15,
  validateConnection: 12,
  changeConnection: 22,
} as const;
export type Change = keyof typeof weights;
const everyChange = Object.keys(weights) as readonly Change[];

const statuses = ['CONNECTED', 'WEBSITE_DOWN', 'OTHER_ERROR', 'MFA_TOKEN_EXPIRED', 'PASSWORD_INCORRECT'];

/** Draws event bodies, of any change or of the given ones. */
interface Events {
  take(count: number, changes?: readonly Change[]): string[];
}

/** Draws changes of a world and makes the bodies of their events (service.md 2.4 to 2.6), by time. */
export function createEvents(world: World, seed: number): Events {
  const random = createRandom(seed);
  // Microseconds since a time after the world's records. Each event is newer than the previous one.
  let micros = 0;
  const now = (): string => {
    micros += random.int(1, 900);
    const at = new Date(Date.UTC(2026, 5, 1) + Math.floor(micros / 1000)).toISOString().slice(0, -1);
    return `${at}${String(micros % 1000).padStart(3, '0')}`;
  };
  const waiting: object[] = [];
  return {
    take: (count, changes = everyChange) =>
      Array.from({ length: count }, () => {
        while (waiting.length === 0) waiting.push(...draw(drawChange(random, changes), world, random, now()));
        return JSON.stringify(waiting.shift());
      }),
  };
}

function draw(change: Change, world: World, random: Random, at: string): object[] {
  switch (change) {
    case 'createDocument':
      return [createDocument(world, random, at)];
    case 'reprocessDocument': {
      const document = random.pick(world.documents);
      const old = { updated: document.updated };
      document.updated = at;
      return [documentPayload('document.updated.v2', document, { old })];
    }
    case 'deleteDocument':
      return [deleteDocument(world, random, at)];
    case 'syncIntervals':
      return [intervalsPayload(world, random)];
    case 'validateConnection': {
      const connection = random.pick(world.connections);
      const old = { status: connection.status };
      connection.status = random.pick(statuses.filter((status) => status !== connection.status));
      return ['connection.validated.v2', 'connection.updated.v2'].map((eventType) =>
        connectionPayload(connection, at, { eventType, protectedChanges: ['status'], old }),
      );
    }
    case 'changeConnection': {
      const changed = { eventType: 'connection.updated.v2', protectedChanges: ['password'], old: {} };
      return [connectionPayload(random.pick(world.connections), at, changed)];
    }
  }
}

function drawChange(random: Random, changes: readonly Change[]): Change {
  const total = changes.reduce((sum, change) => sum + weights[change], 0);
  let left = random.int(1, total);
  for (const change of changes) {
    left -= weights[change];
    if (left <= 0) return change;
  }
  return 'createDocument';
}

function createDocument(world: World, random: Random, at: string): object {
  const company = random.pick(world.companies);
  const document = { id: random.uuid(), company, site: random.pick(company.sites), created: at, updated: at };
  world.documents.push(document);
  return documentPayload('document.created.v2', document);
}

function deleteDocument(world: World, random: Random, at: string): object {
  const place = random.int(0, world.documents.length - 1);
  const document = world.documents[place] as Document;
  const last = world.documents.pop() as Document;
  if (last !== document) world.documents[place] = last;
  document.updated = at;
  return documentPayload('document.deleted.v2', document);
}

const companyObject = ({ externalId, id, name, publicId }: Document['company']) => ({
  externalId,
  id,
  name,
  publicId,
});

function documentPayload(eventType: string, document: Document, more: object = {}): object {
  const { id, company, site, created, updated } = document;
  return { eventType, id, company: companyObject(company), site, created, updated, ...more };
}

function connectionPayload(connection: Connection, at: string, more: object): object {
  const { id, company, created, accounts, status } = connection;
  const number = Number.parseInt(id.slice(0, 4), 16);
  return {
    company: companyObject(company),
    created,
    datasource: { name: `Utility ${number % 40}` },
    externalId: `K-${number}`,
    id,
    sitesRelations: company.sites.slice(0, 2).map((site, index) => ({
      accountIds: [accounts[index]],
      datasourceTypes: ['ELECTRICITY'],
      site,
    })),
    status,
    updated: at,
    url: `https://www.utility-${number % 40}.example`,
    ...more,
  };
}

function intervalsPayload(world: World, random: Random): object {
  const meter = random.pick(world.meters);
  const day = random.int(1, 27);
  const range = { start: `2026-05-${String(day).padStart(2, '0')}T00:00:00.000000` };
  return {
    meterId: meter.id,
    ...range,
    end: `2026-05-${String(day + 1).padStart(2, '0')}T00:00:00.000000`,
    intervalCount: 96,
    createdCount: 96,
    updatedCount: 0,
    companyExternalId: meter.company.externalId,
    accountNumber: null,
    granularitySeconds: [900],
    usageUnits: ['kWh'],
    qualities: ['ACTUAL'],
  };
}

/** Writes a load's world as rows, as a backfill would: most events find a row. `raw` has a real size. */
export async function fillWarehouse(url: string): Promise<void> {
  const { companies, connections, documents, meters } = createWorld(worldSeed);
  const fields = `(select jsonb_object_agg('field' || n, md5(id::text || n)) from generate_series(1, 24) n)`;
  await withClient(url, async (client) => {
    await client.query(
      `insert into utility.companies (id, raw, synced_at)
        select id, jsonb_build_object('externalId', external_id, 'publicId', public_id, 'name', name), now()
        from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as t (id, external_id, public_id, name)`,
      [
        companies.map((company) => company.id),
        companies.map((company) => company.externalId),
        companies.map((company) => company.publicId),
        companies.map((company) => company.name),
      ],
    );
    const sites = companies.flatMap((company) => company.sites.map((site) => ({ ...site, company })));
    await client.query(
      `insert into utility.sites (id, company_id, raw, synced_at)
        select id, company_id, jsonb_build_object('name', name), now()
        from unnest($1::uuid[], $2::uuid[], $3::text[]) as t (id, company_id, name)`,
      [sites.map((site) => site.id), sites.map((site) => site.company.id), sites.map((site) => site.name)],
    );
    await client.query(
      `insert into utility.connections (id, company_id, raw, synced_at)
        select id, company_id, ${fields} || jsonb_build_object('created', at, 'updated', at), now()
        from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as t (id, company_id, at)`,
      [
        connections.map((connection) => connection.id),
        connections.map((connection) => connection.company.id),
        connections.map((connection) => connection.created),
      ],
    );
    await client.query(
      `insert into utility.documents (id, company_id, raw, synced_at)
        select id, company_id, ${fields} || jsonb_build_object('site', site_id, 'created', at, 'updated', at), now()
        from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[]) as t (id, company_id, site_id, at)`,
      [
        documents.map((document) => document.id),
        documents.map((document) => document.company.id),
        documents.map((document) => document.site.id),
        documents.map((document) => document.created),
      ],
    );
    await client.query(
      `insert into utility.meters (id, company_id, raw, synced_at)
        select id, company_id, '{}', now() from unnest($1::text[], $2::uuid[]) as t (id, company_id)`,
      [meters.map((meter) => meter.id), meters.map((meter) => meter.company.id)],
    );
    await client.query('vacuum analyze');
  });
}

export interface Random {
  /** Returns a number from 0 to below 1. */
  next(): number;
  /** Returns an integer from `least` to `most`, both included. */
  int(least: number, most: number): number;
  pick<T>(from: readonly T[]): T;
  uuid(): string;
}

/** Mulberry32: 32 bits of state are enough for a bench. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const bits = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const next = () => bits() / 2 ** 32;
  const int = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    int,
    pick: (from) => {
      const picked = from[int(0, from.length - 1)];
      if (picked === undefined) throw new Error('there is nothing to pick from');
      return picked;
    },
    uuid: () => {
      const hex = [bits(), bits(), bits(), bits()].map((part) => part.toString(16).padStart(8, '0')).join('');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}
