import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { isSameSecret } from '../../web/link.ts';
import { faultSchema } from '../api/faults.ts';
import { type Query, readCount, readText, readTexts } from '../api/filters.ts';
import { randomTypes } from '../changes/random.ts';
import { changesSchema } from '../changes/schema.ts';
import { inTransaction } from '../database.ts';
import { disturbanceSchema } from '../delivery/disturbance.ts';
import {
  addEndpoint,
  type Endpoint,
  endpointSchema,
  endpointUpdateSchema,
  listEndpoints,
  requireEndpoint,
  rotateSecret,
  rotationHours,
  setEndpointState,
  updateEndpoint,
} from '../delivery/endpoints.ts';
import { addOrganization, newApiKey } from '../organizations.ts';
import { keepClock, mint, type Parts } from '../parts.ts';
import { badRequest, Problem } from '../problem.ts';
import { secondsToMicros, toText } from '../time.ts';
import { createStatus, deliveryStates, readAttempts, readDeliveries, readEvents } from './status.ts';

/** The routes that `GET /sandbox` lists; docs/reference/sandbox.md says more. */
const controlRoutes = {
  'GET /sandbox': 'these routes and the state',
  'GET /sandbox/status': 'counts of records, events and deliveries; quiet when nothing is left to deliver',
  'GET /sandbox/events?after=0&limit=100': 'events in the order in which they were written',
  'GET /sandbox/deliveries?state=&endpointId=&after=0&limit=100': 'deliveries',
  'GET /sandbox/deliveries/{id}/attempts': 'what was sent and what came back',
  'POST /sandbox/changes': '{changes: [{type, ...}]}: all applied in order, or none',
  'POST /sandbox/random': '{count, seed?, types?}: that many random valid changes',
  'POST /sandbox/live': '{perMinute}: random changes a minute; 0 ends it',
  'GET /sandbox/organizations': 'organizations and their API keys',
  'POST /sandbox/organizations': '{name?, apiKey?}: one more organization',
  'GET /sandbox/endpoints': 'the webhook endpoints',
  'POST /sandbox/endpoints': '{url, eventTypes?, secret?, organizationId?}: an endpoint and its secret',
  'PUT /sandbox/endpoints/{id}':
    'the same for an id of yours: an endpoint that exists is moved and made active',
  'PATCH /sandbox/endpoints/{id}': '{url?, eventTypes?}',
  'DELETE /sandbox/endpoints/{id}': 'removes an endpoint and cancels its remaining attempts',
  'POST /sandbox/endpoints/{id}/state': '{state: "active" | "disabled"}',
  'POST /sandbox/endpoints/{id}/secret': '{secret?}: a new secret; the old secret also signs for 24 hours',
  'POST /sandbox/disturb': '{duplicate?, shuffle?, delayMs?, drop?, seed?, endpointId?}: {} ends it',
  'GET /sandbox/faults': 'the faults that are set',
  'POST /sandbox/faults': '{kind, path?, probability?, times?, seconds?, ...}: the API misbehaves',
  'DELETE /sandbox/faults/{id}': 'ends a fault; without an id all of them',
  'POST /sandbox/clock': '{advanceSeconds?, signatures?: "real" | "virtual"}: moves the service’s clock',
} as const;

const randomSchema = z.strictObject({
  count: z.int().min(1).max(1_000_000),
  seed: z.int().optional(),
  types: z.array(z.enum(randomTypes)).min(1).optional(),
});
const liveSchema = z.strictObject({ perMinute: z.number().min(0).max(60_000) });
const clockSchema = z.strictObject({
  advanceSeconds: z.number().min(0).max(1e9).default(0),
  signatures: z.enum(['real', 'virtual']).optional(),
});
const organizationSchema = z.strictObject({
  name: z.string().min(1).max(200).optional(),
  apiKey: z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/)
    .optional(),
});

/**
 * Routes that show the service's internals and change it. They need the control token, and no web page may ask for
 * them: they show secrets of every organization, and any user of the machine can reach its loopback address.
 */
export function controlPlane(app: FastifyInstance, token: string, parts: Parts): void {
  app.addHook('onRequest', async ({ headers }, reply) => {
    if (askedByPage(headers)) throw new Problem(403, 'Control routes refuse requests from web pages.');
    if (!isSameSecret(headers.authorization ?? '', `Bearer ${token}`)) {
      reply.header('www-authenticate', 'Bearer');
      throw new Problem(401, 'Control routes need the control token: Authorization: Bearer TOKEN.');
    }
  });
  readingRoutes(app, parts);
  changingRoutes(app, parts);
  endpointRoutes(app, parts);
  faultRoutes(app, parts);
}

/** Browsers name the requesting page in Sec-Fetch-Site: `none` for an address that a person typed. */
const askedByPage = (headers: IncomingHttpHeaders): boolean =>
  headers.origin !== undefined || (headers['sec-fetch-site'] ?? 'none') !== 'none';

/** Decodes a request's body by the schema. @throws Problem 400 that names the error */
function readBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body ?? {});
  if (result.success) return result.data;
  const wrong = result.error.issues.map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`);
  throw badRequest(wrong.join('; '));
}

function readingRoutes(app: FastifyInstance, parts: Parts): void {
  const { pool } = parts.stores;
  const status = createStatus(parts);

  app.get('/sandbox', async () => ({ routes: controlRoutes, state: await status() }));
  app.get('/sandbox/status', () => status());
  app.get('/sandbox/organizations', async () => ({ organizations: parts.organizations }));
  app.get<{ Querystring: Query }>('/sandbox/events', async ({ query }) => ({
    events: await readEvents(pool, readAfter(query), readCount(query, 'limit', 100, 10_000)),
  }));
  app.get<{ Querystring: Query }>('/sandbox/deliveries', async ({ query }) => {
    const asked = {
      states: readTexts(query, 'state', deliveryStates),
      endpointId: readText(query, 'endpointId'),
      after: readAfter(query),
      limit: readCount(query, 'limit', 100, 10_000),
    };
    if (asked.endpointId !== undefined) await requireEndpoint(pool, asked.endpointId);
    return { deliveries: await readDeliveries(pool, asked) };
  });
  app.get<{ Params: { id: string } }>('/sandbox/deliveries/:id/attempts', async ({ params }) => {
    if (!/^\d{1,18}$/.test(params.id)) throw badRequest('The id of a delivery is a number.');
    return { attempts: await readAttempts(pool, params.id) };
  });
}

function readAfter(query: Query): number {
  const text = readText(query, 'after') ?? '0';
  if (!/^\d{1,15}$/.test(text)) throw badRequest('after must be a whole number.');
  return Number(text);
}

function changingRoutes(app: FastifyInstance, parts: Parts): void {
  const { stores, clock, changes, live, dispatcher, signing, organizations, keys } = parts;

  app.post('/sandbox/changes', async ({ body }) => {
    const applied = await changes.apply(readBody(changesSchema, body).changes);
    return { changes: applied.changes, events: applied.events };
  });
  app.post('/sandbox/random', async ({ body }) => {
    const { count, seed = parts.seed, types } = readBody(randomSchema, body);
    return changes.random({ count, seed, types });
  });
  app.post('/sandbox/live', async ({ body }) => {
    live.setRate(readBody(liveSchema, body).perMinute);
    return { perMinute: live.rate() };
  });
  app.post('/sandbox/organizations', async ({ body }, reply) => {
    const { name = 'Another organization', apiKey = newApiKey() } = readBody(organizationSchema, body);
    const organization = { id: randomUUID(), name, apiKey };
    await addOrganization(stores.pool, organization);
    organizations.push(organization);
    keys.set(apiKey, organization.id);
    return reply.status(201).send(organization);
  });
  app.post('/sandbox/clock', async ({ body }) => {
    const { advanceSeconds, signatures } = readBody(clockSchema, body);
    if (signatures !== undefined) signing.mode = signatures;
    clock.advance(advanceSeconds);
    await keepClock(parts);
    dispatcher.wake();
    return { now: toText(clock.now()) };
  });
}

const stateSchema = z.strictObject({ state: z.enum(['active', 'disabled']) });
const rotateSchema = z.strictObject({ secret: endpointSchema.shape.secret });

interface ById {
  Params: { id: string };
}

function endpointRoutes(app: FastifyInstance, { stores: { pool }, clock, dispatcher }: Parts): void {
  const shown = ({ id, url, eventTypes, state, secret }: Endpoint) => ({
    id,
    url,
    eventTypes,
    state,
    secret,
  });
  const moveTo = async (id: string, state: Endpoint['state']) => {
    await inTransaction(pool, (client) => setEndpointState(client, id, state));
    await dispatcher.reload();
    return { id, state };
  };

  app.get('/sandbox/endpoints', async () => ({ endpoints: await listEndpoints(pool) }));
  const place = async (id: string, body: unknown) => {
    const made = { id, secret: mint.newSecret(), now: toText(clock.now()) };
    const endpoint = await addEndpoint(pool, readBody(endpointSchema, body), made);
    await dispatcher.reload();
    return shown(endpoint);
  };
  app.post('/sandbox/endpoints', async ({ body }, reply) =>
    reply.status(201).send(await place(mint.newEndpointId(), body)),
  );
  app.put<ById>('/sandbox/endpoints/:id', ({ params, body }) => place(params.id, body));
  app.patch<ById>('/sandbox/endpoints/:id', async ({ params, body }) => {
    const endpoint = await updateEndpoint(pool, params.id, readBody(endpointUpdateSchema, body));
    await dispatcher.reload();
    return shown(endpoint);
  });
  app.post<ById>('/sandbox/endpoints/:id/secret', async ({ params, body }) => {
    const { secret = mint.newSecret() } = readBody(rotateSchema, body);
    const until = toText(clock.now() + secondsToMicros(rotationHours * 3600));
    const endpoint = await rotateSecret(pool, params.id, secret, until);
    await dispatcher.reload();
    return shown(endpoint);
  });
  app.delete<ById>('/sandbox/endpoints/:id', ({ params }) => moveTo(params.id, 'removed'));
  app.post<ById>('/sandbox/endpoints/:id/state', ({ params, body }) =>
    moveTo(params.id, readBody(stateSchema, body).state),
  );
}

const faultBody = z.looseObject({}).pipe(faultSchema);

/** Routes that make the service misbehave: its API (faults) and its deliveries (disturbances). */
function faultRoutes(app: FastifyInstance, { stores: { pool }, faults, disturbances }: Parts): void {
  app.get('/sandbox/faults', async () => ({ faults: faults.registry.list() }));
  app.post('/sandbox/faults', async ({ body }, reply) =>
    reply.status(201).send(await faults.set(readBody(faultBody, body))),
  );
  app.delete('/sandbox/faults', async () => {
    faults.registry.clear();
    return { faults: [] };
  });
  app.delete<{ Params: { id: string } }>('/sandbox/faults/:id', async ({ params }) => {
    faults.registry.clear(params.id);
    return { faults: faults.registry.list() };
  });
  app.post('/sandbox/disturb', async ({ body }) => {
    const { endpointId = null, ...disturbance } = readBody(disturbanceSchema, body);
    if (endpointId !== null) await requireEndpoint(pool, endpointId);
    await disturbances.set(endpointId, disturbance);
    return { ...disturbance, endpointId };
  });
}
