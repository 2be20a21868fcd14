import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { inject } from 'vitest';
import { createFaults, type Faults } from '../../sandbox/api/faults.ts';
import { apiRoutes } from '../../sandbox/api/routes.ts';
import { createServer } from '../../sandbox/api/server.ts';
import { type ChangeService, createChangeService } from '../../sandbox/changes/service.ts';
import { openStores, type Stores } from '../../sandbox/database.ts';
import { addOrganization } from '../../sandbox/organizations.ts';
import { createClock, createRealTime, type ServiceClock } from '../../sandbox/time.ts';
import { createDatabase } from '../support/database.ts';

export const apiKey = 'key-of-the-model';

/** The tables of records, which a backup of the service has. */
const tables = [
  'companies',
  'sites',
  'connections',
  'meters',
  'documents',
  'usage_data',
  'intervals',
] as const;

/** The records of all tables at a moment, as JSON. */
export type Backup = Readonly<Record<(typeof tables)[number], string>>;

/** An answer of the API. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** What the service keeps from all its answers for now. */
export type Refusal = 'key' | 'outage';

/** Records of the listings, by the keys under which their pages have them. */
const keysOfListings = ['connections', 'meters', 'documents', 'usageData', 'intervals'];

/** A record that a second company's listing shows, too, as that company sees it. */
interface SecondListing {
  readonly kind: 'connection' | 'meter' | 'document';
  readonly id: string;
  readonly owner: string;
}

/** How the service of a history is. */
export interface Circumstances {
  /** How far the service's clock is ahead of the warehouse's. */
  readonly aheadHours: number;
  readonly pageSize: number;
  readonly habits: Habits;
}

/** What the service's description leaves open about its records. */
export interface Habits {
  /** Whether the records of connections, documents and usage list their sites, or only events do. */
  readonly listsSites: boolean;
  readonly readingsHaveUpdated: boolean;
  readonly readingsHaveIds: boolean;
  /** Whether readings are listed from the newest to the oldest. */
  readonly newestFirst: boolean;
}

type Ask = (url: string) => Promise<Answer>;

interface Identified {
  readonly id: string;
  readonly document?: { readonly id: string };
}

/**
 * The sandbox's API without a network, on a database of its own. Its pages are short, it can show states of
 * before, list a record for two companies, refuse everything, and be restored from a backup.
 */
export class Service {
  readonly pool: pg.Pool;
  readonly clock: ServiceClock;
  readonly changes: ChangeService;
  refuses: Refusal | undefined;
  /** Whether answers may show an earlier state. */
  lags = false;
  /** What listings of a company show besides its own records. */
  readonly #alsoListed = new Map<string, SecondListing[]>();
  readonly #app: FastifyInstance;
  /** The same API without faults. */
  readonly #truth: FastifyInstance;
  readonly #faults: Faults;
  readonly #stores: Stores;
  readonly #drop: () => Promise<void>;
  #habits: Habits = {
    ...{ listsSites: true, readingsHaveUpdated: true },
    ...{ readingsHaveIds: true, newestFirst: false },
  };
  #ids = 0;
  #pageSize = 2;

  private constructor(stores: Stores, drop: () => Promise<void>, databaseUrl: string, organization: string) {
    this.#stores = stores;
    this.#drop = drop;
    const { pool } = stores;
    this.pool = pool;
    this.clock = createClock(createRealTime());
    const report = (error: Error): void => {
      throw error;
    };
    this.#faults = createFaults(databaseUrl, Date.now, report);
    const serve = ({ registry, snapshots }: Pick<Faults, 'registry' | 'snapshots'>): FastifyInstance => {
      const app = createServer(report);
      apiRoutes(app, {
        pool,
        keys: new Map([[apiKey, organization]]),
        links: { create: async () => '' },
        faults: { pool, registry, snapshots },
        // Tables also change behind the back of the sandbox.
        cache: { asOf: () => 0, find: () => undefined, keep: () => {}, changed: () => {} },
      });
      return app;
    };
    this.#app = serve(this.#faults);
    this.#truth = serve(createFaults(databaseUrl, Date.now, report));
    this.changes = createChangeService({
      pool,
      clock: this.clock,
      delays: () => [],
      newId: () => this.newId(),
      newMessageId: () => `msg_${this.newId()}`,
      until: '2026-07-01',
      committed: () => {},
    });
  }

  static async open(): Promise<Service> {
    const { url, drop } = await createDatabase('sandbox', inject('sandboxTemplate'));
    const stores = await openStores(url, () => {});
    const organization = '00000000-0000-4000-8000-0000000000aa';
    await addOrganization(stores.pool, { id: organization, name: 'Ours', apiKey });
    await stores.pool.query('update sandbox.organizations set webhooks_enabled = true');
    return new Service(stores, drop, url, organization);
  }

  async close(): Promise<void> {
    await this.#app.close();
    await this.#truth.close();
    await this.#faults.close();
    await this.#stores.close();
    await this.#drop();
  }

  /** Begins a history: ids are the same in each, so that a failed one can be repeated. */
  async begin({ pageSize, aheadHours, habits }: Circumstances, firstId: number): Promise<void> {
    this.#ids = firstId;
    this.#pageSize = pageSize;
    this.#habits = habits;
    this.#alsoListed.clear();
    this.calm();
    const wanted = BigInt(aheadHours) * 3_600_000_000n;
    this.clock.advance(Number((wanted - this.clock.offset()) / 1_000_000n));
    await this.pool.query('delete from sandbox.events');
    await this.restore({} as Backup);
  }

  /** Ids of all sizes, in a fixed order. */
  newId(): string {
    this.#ids += 1;
    const scattered = ((this.#ids * 2_654_435_761) >>> 0).toString(16).padStart(8, '0');
    return `${scattered}-0000-4000-8000-${String(this.#ids).padStart(12, '0')}`;
  }

  /** Ends refusals and late answers. */
  calm(): void {
    this.refuses = undefined;
    this.lags = false;
    this.#faults.registry.clear();
  }

  /** From now on, answers of these paths show the present state. */
  async freeze(path: string | undefined): Promise<void> {
    this.lags = true;
    await this.#faults.set({
      kind: 'stale',
      probability: 1,
      seed: 1,
      ...(path === undefined ? {} : { path }),
    });
  }

  async backup(): Promise<Backup> {
    const parts = tables.map((name) => `(select json_agg(t)::text from sandbox.${name} t) as ${name}`);
    const { rows } = await this.pool.query<Backup>(`select ${parts.join(', ')}`);
    return rows[0] as Backup;
  }

  async restore(backup: Backup): Promise<void> {
    for (const name of tables) {
      await this.pool.query(`delete from sandbox.${name}`);
      await this.pool.query(
        `insert into sandbox.${name} select * from json_populate_recordset(null::sandbox.${name}, $1::json)`,
        [backup[name] ?? '[]'],
      );
    }
  }

  /** Lets a company's listing show a record of another company, or ends that. */
  listTwice(by: string, record: SecondListing): void {
    const held = this.#alsoListed.get(by) ?? [];
    const others = held.filter(({ id }) => id !== record.id);
    this.#alsoListed.set(by, others.length < held.length ? others : [...held, record]);
  }

  /** Answers a request; `path` begins with the version. */
  async answer(path: string): Promise<Answer> {
    if (this.refuses === 'key') return { status: 401, body: '{"detail":"The API key is not valid."}' };
    if (this.refuses === 'outage') return { status: 503, body: '{"detail":"Come back later."}' };
    const url = new URL(path, 'http://sandbox');
    const page = Number(url.searchParams.get('page') ?? 1);
    for (const name of ['page', 'limit']) url.searchParams.delete(name);
    const ask = (one: string): Promise<Answer> => this.#ask(this.#app, one);
    const answer = await ask(url.pathname + url.search);
    if (answer.status !== 200) return answer;
    return { status: 200, body: await this.#paged(ask, url, answer.body, page) };
  }

  /** A client's connections, which lead to this service without a network. */
  request = async ({ path }: { readonly path: string }) => {
    const { status, body } = await this.answer(path);
    const headers = { 'content-type': 'application/json' };
    return { statusCode: status, headers, body: Readable.from([Buffer.from(body)]) };
  };

  /** Reads all present records of a listing, or a bare array; none if the service does not have its owner. */
  async list<T = Identified>(path: string): Promise<T[]> {
    const url = new URL(`/v2.2${path}`, 'http://sandbox');
    const ask = (one: string): Promise<Answer> => this.#ask(this.#truth, one);
    const { status, body } = await ask(url.pathname + url.search);
    if (status !== 200) return [];
    const all: unknown = JSON.parse(body);
    return (Array.isArray(all) ? all : (await this.#recordsOf(ask, url, all as object)).records) as T[];
  }

  async #ask(app: FastifyInstance, url: string): Promise<Answer> {
    const headers = { 'x-api-key': apiKey, host: 'localhost' };
    const { statusCode, payload } = await app.inject({ method: 'GET', url, headers });
    if (statusCode >= 500) throw new Error(`the sandbox fails: ${payload}`);
    const omitted = this.#omitted(url);
    if (omitted.length === 0) return { status: statusCode, body: payload };
    const without = (name: string, value: unknown) => (omitted.includes(name) ? undefined : value);
    return { status: statusCode, body: JSON.stringify(JSON.parse(payload, without)) };
  }

  /** The fields that records of this path do not have at a service with these habits. */
  #omitted(url: string): readonly string[] {
    const { listsSites, readingsHaveUpdated, readingsHaveIds } = this.#habits;
    if (url.includes('/interval/'))
      return [...(readingsHaveUpdated ? [] : ['updated']), ...(readingsHaveIds ? [] : ['id'])];
    return listsSites || !/\/(connection|document|usage)\//.test(url) ? [] : ['site', 'sitesRelations'];
  }

  /** Cuts a listing into short pages. Beyond the last page comes the last one, as the service does. */
  async #paged(ask: Ask, url: URL, body: string, asked: number): Promise<string> {
    const envelope = JSON.parse(body) as Record<string, unknown>;
    if (!('totalPages' in envelope)) return body;
    const { key, records } = await this.#recordsOf(ask, url, envelope);
    const totalPages = Math.max(1, Math.ceil(records.length / this.#pageSize));
    const page = Math.min(asked, totalPages);
    const total = Object.keys(envelope).find((name) => name.startsWith('total') && name !== 'totalPages');
    return JSON.stringify({
      ...envelope,
      [total as string]: records.length,
      ...{ perPage: this.#pageSize, totalPages, currentPage: page },
      ...{ hasNext: page < totalPages, hasPrevious: page > 1 },
      [key]: records.slice((page - 1) * this.#pageSize, page * this.#pageSize),
    });
  }

  /** The records of a listing, with those that the listing of another company shows, too. */
  async #recordsOf(
    ask: Ask,
    url: URL,
    envelope: object,
  ): Promise<{ key: string; records: readonly Identified[] }> {
    const key = keysOfListings.find((name) => name in envelope) as string;
    const own = (envelope as Record<string, Identified[]>)[key] ?? [];
    const [, version, kind, scope, company = ''] = url.pathname.split('/');
    if (key === 'intervals' && this.#habits.newestFirst) own.reverse();
    if (scope !== 'company') return { key, records: own };
    const more: Identified[] = [];
    for (const second of this.#alsoListed.get(company) ?? []) {
      if (second.kind !== (kind === 'usage' ? 'document' : kind)) continue;
      const { status, body } = await ask(`/${version}/${kind}/company/${second.owner}${url.search}`);
      if (status !== 200) continue;
      const theirs = (JSON.parse(body) as Record<string, Identified[]>)[key] ?? [];
      for (const record of theirs) {
        const isIt = record.id === second.id || record.document?.id === second.id;
        const isOwn = own.some(({ id }) => id === record.id);
        if (isIt && !isOwn)
          more.push(kind === 'usage' ? record : ({ ...record, seenBy: company } as Identified));
      }
    }
    return { key, records: [...own, ...more] };
  }
}
