import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { Pool } from 'pg';
import { apiRoutes } from './api/routes.ts';
import { createServer, refuseForeignHosts } from './api/server.ts';
import { controlPlane } from './control/routes.ts';
import { openStores, type Stores } from './database.ts';
import { load } from './generate/load.ts';
import { type Organization, readOrganizations } from './organizations.ts';
import { closeParts, createParts, historyEnd, mint, type Parts, type SandboxOptions } from './parts.ts';
import { moveInboxes } from './portal/inbox.ts';
import { portalRoutes } from './portal/portal.ts';
import { createLink } from './portal/session.ts';

export type { SandboxLogEntry, SandboxOptions } from './parts.ts';

export interface Sandbox {
  readonly url: string;
  /** Base address of the newest API version. */
  readonly apiUrl: string;
  /** The key of the first organization, or the key that the options contain. */
  readonly apiKey: string;
  /** The token that control routes require. Each start creates another. */
  readonly controlToken: string;
  readonly organizations: readonly Organization[];
  /** Resolves if another sandbox took over the database during an outage. This one must then end. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
}

/**
 * Starts the Utility Data Service on a database of its own, with data if it is empty.
 * @throws Error when the database can't be reached or another sandbox runs on it.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const log = options.log ?? (() => undefined);
  const report = (error: Error) => log({ level: 'error', message: error.message, error });
  const stores = await openStores(options.databaseUrl, report);
  try {
    log({
      level: 'info',
      message: (await generateWhenEmpty(stores, options)) ? 'data generated' : dataFound,
    });
    if (options.apiKey !== undefined) await addKey(stores.pool, options.apiKey);
    const organizations = await readOrganizations(stores.pool);
    const parts = await createParts(stores, organizations, options, report);
    const host = options.host ?? '127.0.0.1';
    const server = await serve(parts, host, options.port ?? 0);
    if (!isLoopback(host)) log({ level: 'info', message: exposed(host) });
    parts.live.setRate(options.live ?? 0);
    return {
      url: server.url,
      apiUrl: `${server.url}/v2.2`,
      apiKey: options.apiKey ?? organizations[0]?.apiKey ?? '',
      controlToken: server.controlToken,
      organizations,
      lost: stores.guard.lost,
      async close() {
        await server.close();
        await closeParts(parts);
      },
    };
  } catch (error) {
    await stores.close();
    throw error;
  }
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || (ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback');

const dataFound =
  'data of an earlier start is served: options for the amount of data, seed, end and irregular bills have no effect';

const exposed = (host: string): string =>
  `The sandbox listens on ${host}, without TLS: anyone on that network can use its API, portal and control routes with an overheard key, link or token.`;

async function generateWhenEmpty(
  { guard: { client }, pool }: Stores,
  options: SandboxOptions,
): Promise<boolean> {
  const { rowCount } = await pool.query('select from sandbox.organizations limit 1');
  if (rowCount !== 0) return false;
  await client.query('begin');
  await load(client, {
    seed: options.seed ?? 1,
    organizations: options.organizations ?? 1,
    companies: options.companies ?? 10,
    documents: options.documents ?? 50,
    intervalDays: options.intervalDays ?? 7,
    ...historyEnd(options),
    irregular: options.irregular ?? 0,
  });
  await client.query('commit');
  return true;
}

async function addKey(pool: Pool, key: string): Promise<void> {
  await pool.query(
    `insert into sandbox.api_keys (key, organization_id)
      select $1, id from sandbox.organizations order by position limit 1 on conflict do nothing`,
    [key],
  );
}

/** Serves API, portal and control routes on one address. */
async function serve(parts: Parts, host: string, port: number) {
  const { stores, clock, cache, faults, dispatcher, keys } = parts;
  const { pool } = stores;
  const app = createServer(parts.report);
  refuseForeignHosts(app, host);
  const links = {
    create: async (organizationId: string, reachedAt: string) => {
      const token = mint.newToken();
      await createLink(pool, organizationId, token, clock.now());
      return `${reachedAt === '' ? addressOf(app, host) : `http://${reachedAt}`}/portal/${token}`;
    },
  };
  apiRoutes(app, { pool, keys, links, faults: { pool, ...faults }, cache });
  portalRoutes(app, {
    pool,
    clock,
    dispatcher,
    address: () => addressOf(app, host),
    report: parts.report,
  });
  const controlToken = mint.newToken();
  app.register(async (control) => controlPlane(control, controlToken, parts));
  await app.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new Error(`port ${port} of ${host} is taken: choose another --port`);
  });
  await moveInboxes(pool, addressOf(app, host));
  await dispatcher.reload();
  return { url: addressOf(app, host), controlToken, close: () => app.close() };
}

function addressOf(app: FastifyInstance, host: string): string {
  const { port } = app.server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
