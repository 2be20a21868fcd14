import { randomBytes, randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import pg from 'pg';
import { type Organization, readOrganizations } from './api/keys.ts';
import { createPageCache } from './api/pageCache.ts';
import { apiRoutes } from './api/routes.ts';
import { createServer } from './api/server.ts';
import { createLive } from './changes/live.ts';
import { createChangeService } from './changes/service.ts';
import { type Clock, createClock, createRealTime, type RealTime } from './clock.ts';
import { endpointRoutes } from './control/endpointRoutes.ts';
import { faultRoutes } from './control/faultRoutes.ts';
import { addOrganization } from './control/organizations.ts';
import { controlPlane } from './control/routes.ts';
import { migrate } from './database/migrate.ts';
import { readSetting, writeSetting } from './database/settings.ts';
import { createDispatcher, type Dispatcher } from './delivery/dispatcher.ts';
import { type Disturbances, openDisturbances } from './delivery/disturbances.ts';
import { retryDelaySeconds } from './delivery/schedule.ts';
import { createFaults } from './faults/faults.ts';
import { load } from './generate/load.ts';
import { createLink } from './portal/links.ts';
import { portalRoutes } from './portal/routes.ts';

export interface SandboxLogEntry {
  readonly level: 'info' | 'error';
  readonly message: string;
  readonly error?: Error;
}

export interface SandboxOptions {
  /** The sandbox's own database: empty, or left by an earlier start. */
  readonly databaseUrl: string;
  readonly host?: string;
  /** 0 takes a free port. */
  readonly port?: number;
  /** Decides every generated id, value and time. */
  readonly seed?: number;
  readonly organizations?: number;
  readonly companies?: number;
  /** Documents of each company. */
  readonly documents?: number;
  /** Days of interval data before `until`. */
  readonly intervalDays?: number;
  /** Last day of the generated history, `YYYY-MM-DD`, whatever day it is. */
  readonly until?: string;
  /** One more key of the first organization. */
  readonly apiKey?: string;
  /** Deliveries in flight for each endpoint. */
  readonly deliveryConcurrency?: number;
  /** Seed 5.3: the vendor's prefix of the signature headers. */
  readonly headerPrefix?: string;
  /** Real time in microseconds. */
  readonly now?: RealTime;
  /** How many times faster than real time the service's clock runs. */
  readonly timeScale?: number;
  /** Spread of retry delays: 0.2 is ±20 %. */
  readonly retryJitter?: number;
  /** Random changes a minute, from the start on. */
  readonly live?: number;
  readonly log?: (entry: SandboxLogEntry) => void;
}

export interface Sandbox {
  readonly url: string;
  /** Base address of the newest API version. */
  readonly apiUrl: string;
  /** The first organization's, or the one asked for. */
  readonly apiKey: string;
  readonly organizations: readonly Organization[];
  close(): Promise<void>;
}

interface Stores {
  /** Holds the lock that keeps a second sandbox out. */
  readonly guard: pg.Client;
  readonly pool: pg.Pool;
}

/**
 * Starts the Utility Data Service on a database of its own: API, dispatch of events, deliveries and the control
 * routes under /sandbox. Data is generated when the database is empty.
 * @throws Error when the database can't be reached or another sandbox runs on it.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const log = options.log ?? (() => undefined);
  const report = (error: Error) => log({ level: 'error', message: error.message, error });
  const stores = await openStores(options.databaseUrl, report);
  try {
    const organizations = await prepareData(stores, options, log);
    const clock = createClock(
      options.now ?? createRealTime(),
      BigInt((await readSetting<string>(stores.pool, 'clockOffsetMicros')) ?? '0'),
      options.timeScale,
    );
    return await serve(stores, clock, organizations, options, report);
  } catch (error) {
    await closeStores(stores);
    throw error;
  }
}

async function openStores(databaseUrl: string, report: (error: Error) => void): Promise<Stores> {
  const guard = new pg.Client({ connectionString: databaseUrl });
  guard.on('error', report);
  await guard.connect();
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 });
  pool.on('error', report);
  return { guard, pool };
}

async function closeStores({ guard, pool }: Stores): Promise<void> {
  await pool.end();
  await guard.end();
}

async function prepareData(
  { guard, pool }: Stores,
  options: SandboxOptions,
  log: (entry: SandboxLogEntry) => void,
): Promise<Organization[]> {
  await migrate(guard);
  const { rows } = await pool.query<{ empty: boolean }>(
    'select not exists (select from sandbox.organizations) as empty',
  );
  if (rows[0]?.empty) {
    await guard.query('begin');
    await load(guard, {
      seed: options.seed ?? 1,
      organizations: options.organizations ?? 1,
      companies: options.companies ?? 10,
      documents: options.documents ?? 50,
      intervalDays: options.intervalDays ?? 7,
      until: options.until ?? defaultUntil,
    });
    await guard.query('commit');
    log({ level: 'info', message: 'data generated' });
  }
  if (options.apiKey !== undefined) await addKey(pool, options.apiKey);
  return readOrganizations(pool);
}

/** Fixed, so that the same seed gives the same history on any day. */
const defaultUntil = '2026-07-01';

async function addKey(pool: pg.Pool, key: string): Promise<void> {
  await pool.query(
    `insert into sandbox.api_keys (key, organization_id)
      select $1, id from sandbox.organizations order by position limit 1 on conflict do nothing`,
    [key],
  );
}

async function serve(
  stores: Stores,
  clock: Clock,
  organizations: Organization[],
  options: SandboxOptions,
  report: (error: Error) => void,
): Promise<Sandbox> {
  const { pool } = stores;
  const seed = options.seed ?? 1;
  const cache = createPageCache(pageCacheBytes);
  const disturbances = await openDisturbances(pool);
  const faults = createFaults(options.databaseUrl, Date.now, report);
  const signing = { mode: 'real' as 'real' | 'virtual' };
  const dispatcher = await startDispatcher(pool, clock, disturbances, signing, options, report);
  const changes = createChangeService({
    pool,
    clock,
    delays: disturbances.delays,
    newId: randomUUID,
    newMessageId: () => `msg_${randomBytes(14).toString('hex')}`,
    until: options.until ?? defaultUntil,
    committed: ({ companyIds, events }) => {
      cache.changed(companyIds);
      if (events.length > 0) dispatcher.wake();
    },
  });
  const live = createLive(changes, seed, report);
  const app = createServer(report);
  const keys = new Map(organizations.map(({ apiKey, id }) => [apiKey, id]));
  const links = {
    create: async (organizationId: string) => {
      const token = randomBytes(24).toString('base64url');
      await createLink(pool, organizationId, token, clock.now());
      return `${addressOf(app, options)}/portal/${token}`;
    },
  };
  apiRoutes(app, { pool, keys, links, faults: { pool, ...faults }, cache });
  portalRoutes(app, { pool, clock });
  faultRoutes(app, { faults, disturbances });
  endpointRoutes(app, {
    pool,
    clock,
    dispatcher,
    newEndpointId: () => `ep_${randomBytes(14).toString('hex')}`,
    newSecret: () => `whsec_${randomBytes(32).toString('base64')}`,
  });
  controlPlane(app, {
    pool,
    clock,
    changes,
    live,
    dispatcher,
    seed,
    setSigning: (mode) => {
      signing.mode = mode;
    },
    keepClock: () => writeSetting(pool, 'clockOffsetMicros', clock.offset().toString()),
    organizations: () => organizations,
    addOrganization: async ({ name = 'Another organization', apiKey = newApiKey() }) => {
      const organization = { id: randomUUID(), name, apiKey };
      await addOrganization(pool, organization);
      organizations.push(organization);
      keys.set(apiKey, organization.id);
      return organization;
    },
  });
  await app.listen({ host: options.host ?? '127.0.0.1', port: options.port ?? 0 });
  live.setRate(options.live ?? 0);
  const closeAll = async () => {
    await live.stop();
    await app.close();
    await dispatcher.close();
    await faults.close();
    await closeStores(stores);
  };
  return running(addressOf(app, options), organizations, options, closeAll);
}

/** Memory for pages that are ready to be sent. */
const pageCacheBytes = 256 * 1024 * 1024;

const newApiKey = (): string => `uds_${randomBytes(16).toString('hex')}`;

function startDispatcher(
  pool: pg.Pool,
  clock: Clock,
  disturbances: Disturbances,
  signing: { readonly mode: 'real' | 'virtual' },
  options: SandboxOptions,
  report: (error: Error) => void,
): Promise<Dispatcher> {
  return createDispatcher({
    pool,
    clock,
    concurrency: options.deliveryConcurrency ?? 16,
    headerPrefix: options.headerPrefix ?? 'webhook',
    disturbance: disturbances.of,
    signingTime: () => new Date(signing.mode === 'real' ? Date.now() : Number(clock.now() / 1000n)),
    retryDelay: (number) => retryDelaySeconds(number, options.retryJitter ?? 0, Math.random()),
    report,
  });
}

const running = (
  url: string,
  organizations: readonly Organization[],
  options: SandboxOptions,
  close: () => Promise<void>,
): Sandbox => ({
  url,
  apiUrl: `${url}/v2.2`,
  apiKey: options.apiKey ?? organizations[0]?.apiKey ?? '',
  organizations,
  close,
});

function addressOf(app: FastifyInstance, { host = '127.0.0.1' }: SandboxOptions): string {
  const { port } = app.server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
