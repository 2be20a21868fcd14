import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import { badRequest, notFound, Problem } from '../problem.ts';
import { type FaultDependencies, hiddenRecords, strikeWithFaults } from './faults.ts';
import { type Query, readBoolean, readCount, readId, readPageNumber } from './filters.ts';
import {
  type ListAsked,
  type Listing,
  listConnections,
  listDocuments,
  listIntervals,
  listMeters,
  listSites,
  listUsageData,
  readPage,
  recordsPerPage,
  type Scope,
} from './listings.ts';
import type { PageCache } from './page-cache.ts';
import { type Resource, readCompanies, readRecord, type Version, versions } from './records.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The organization of the request's key. */
    organizationId: string;
  }
}

interface ApiDependencies {
  readonly pool: Pool;
  readonly keys: ReadonlyMap<string, string>;
  readonly links: PortalLinks;
  readonly faults: FaultDependencies;
  readonly cache: PageCache;
}

interface ById {
  Params: { id: string };
  Querystring: Query;
}

/** Each list with the scopes under which it exists and the function that reads it. */
const lists: readonly (readonly [string, readonly Scope[], (asked: ListAsked) => Listing])[] = [
  ['site', ['company'], listSites],
  ['connection', ['company'], listConnections],
  ['meter', ['company', 'site', 'connection'], listMeters],
  ['document', ['company', 'site', 'connection'], listDocuments],
  ['usage', ['company', 'site', 'connection', 'meter', 'document'], listUsageData],
  ['interval', ['meter', 'connection'], listIntervals],
];

const records: readonly (readonly [string, Resource])[] = [
  ['/company/:id', 'company'],
  ['/site/:id', 'site'],
  ['/connection/:id', 'connection'],
  ['/connection/:id/details', 'connection'],
  ['/meter/:id', 'meter'],
  ['/document/:id', 'document'],
  ['/usage/:id', 'usage'],
];

/** The largest `limit` that `/connection/company/{id}` accepts. */
const limitMax = 500;

/** Serves the API below each version's prefix, with the same paths, keys and data (service.md 4, 5, 9). */
export function apiRoutes(app: FastifyInstance, dependencies: ApiDependencies): void {
  app.decorateRequest('organizationId', '');
  app.decorateRequest('faults');
  app.decorateRequest('reader');
  for (const version of versions) {
    app.register(async (scope) => versionRoutes(scope, version, dependencies), { prefix: `/${version}` });
  }
}

function versionRoutes(app: FastifyInstance, version: Version, dependencies: ApiDependencies): void {
  const { pool, keys, links, faults, cache } = dependencies;
  app.addHook('onRequest', async (request, reply) => {
    // Records are sent as text that is JSON already.
    reply.type('application/json; charset=utf-8');
    request.faults = [];
    request.organizationId = organizationOf(request, keys);
  });
  strikeWithFaults(app, `/${version}`, faults);
  app.get('/ping', async () => ({ version }));
  app.get('/company', (request) => readCompanies(request.reader, request.organizationId));
  for (const [path, resource] of records) {
    app.get<ById>(path, async (request) => {
      const id = readId(request.params.id);
      const withDeleted = readBoolean(request.query, 'isDeleted');
      const { reader, organizationId } = request;
      const record = await readRecord(reader, resource, version, id, organizationId, withDeleted);
      if (record === undefined) throw notFound(resource);
      return record;
    });
  }
  for (const [resource, scopes, list] of lists) {
    for (const scope of scopes) {
      const limited = resource === 'connection';
      app.get<ById>(`/${resource}/${scope}/:id`, (request) =>
        answerPage(request, scope, limited, cache, () => {
          const { query, organizationId, params } = request;
          return list({ version, organizationId, scope, id: readId(params.id), query });
        }),
      );
    }
  }
  configureWebhook(app, pool, links);
}

/** Returns a page from the cache, or reads and keeps it. A request with a fault does not use the cache. */
async function answerPage(
  request: FastifyRequest<ById>,
  scope: Scope,
  limited: boolean,
  cache: PageCache,
  listing: () => Listing,
): Promise<Buffer> {
  const plain = request.faults.length === 0;
  const key = `${request.organizationId} ${request.url}`;
  const kept = plain ? cache.find(key) : undefined;
  if (kept !== undefined) return kept;
  const asOf = cache.asOf();
  const page = readPageNumber(request.query);
  const perPage = limited ? readCount(request.query, 'limit', recordsPerPage, limitMax) : recordsPerPage;
  const hidden = hiddenRecords(request.faults, page);
  const read = await readPage(request.reader, listing(), { page, perPage, hidden });
  if (read === undefined) throw notFound(scope);
  if (plain) cache.keep(key, { ...read, asOf });
  return read.body;
}

/** @throws Problem 401 without a valid key */
function organizationOf(request: FastifyRequest, keys: ReadonlyMap<string, string>): string {
  const key = request.headers['x-api-key'];
  if (typeof key !== 'string' || key === '') {
    throw new Problem(401, 'Authentication credentials were not provided: send the X-API-Key header.');
  }
  const organizationId = keys.get(key);
  if (organizationId === undefined) throw new Problem(401, 'The API key is not valid.');
  return organizationId;
}

const setting = z.strictObject({ enabled: z.boolean() });

interface PortalLinks {
  /**
   * Creates a link to the organization's portal, valid for 7 days (service.md 4), on the host by which the
   * caller reached the sandbox: a browser cannot use 0.0.0.0 or a port inside a container.
   */
  create(organizationId: string, reachedAt: string): Promise<string>;
}

/** `/external/configure_webhook` (service.md 2.1, 3.1, 4): whether events are dispatched for the organization. */
function configureWebhook(app: FastifyInstance, pool: Pool, links: PortalLinks): void {
  const path = '/external/configure_webhook';
  const state = async (organizationId: string) => {
    const { rows } = await pool.query<{ enabled: boolean }>(
      'select webhooks_enabled as enabled from sandbox.organizations where id = $1',
      [organizationId],
    );
    return { enabled: rows[0]?.enabled ?? false };
  };

  app.get(path, (request) => state(request.organizationId));

  app.patch(path, async (request) => {
    const asked = setting.safeParse(request.body);
    if (!asked.success) throw badRequest('The body must be {"enabled": true} or {"enabled": false}.');
    await pool.query('update sandbox.organizations set webhooks_enabled = $2 where id = $1', [
      request.organizationId,
      asked.data.enabled,
    ]);
    return asked.data;
  });

  app.post(path, async (request) => {
    const { enabled } = await state(request.organizationId);
    if (!enabled) throw new Problem(403, 'Webhooks are disabled for this organization.');
    return { url: await links.create(request.organizationId, request.host) };
  });
}
