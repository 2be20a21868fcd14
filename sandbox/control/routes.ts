import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { Organization } from '../api/keys.ts';
import { type Query, readCount, readText, readTexts } from '../api/query.ts';
import type { Live } from '../changes/live.ts';
import { randomTypes } from '../changes/random.ts';
import { changesSchema } from '../changes/schema.ts';
import type { ChangeService } from '../changes/service.ts';
import type { ServiceClock } from '../clock.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import { requireEndpoint } from '../delivery/endpoints.ts';
import { badRequest } from '../problem.ts';
import { toText } from '../timestamps.ts';
import { readBody } from './body.ts';
import { deliveryStates, readAttempts, readDeliveries, readEvents } from './events.ts';
import type { Status } from './status.ts';

export interface ControlDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly changes: ChangeService;
  readonly live: Live;
  readonly dispatcher: Dispatcher;
  readonly seed: number;
  readonly setSigning: (signing: 'real' | 'virtual') => void;
  /** Stores the offset of the clock, so that a restart does not set it back. */
  readonly keepClock: () => Promise<void>;
  readonly addOrganization: (asked: {
    name?: string | undefined;
    apiKey?: string | undefined;
  }) => Promise<Organization>;
  readonly organizations: () => readonly Organization[];
  readonly status: () => Promise<Status>;
}

/** The routes that `GET /sandbox` lists; docs/guides/sandbox.md says more. */
export const controlRoutes = {
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

/** Routes that show the service's internals and change it. They need the control token and no API key. */
export function controlPlane(app: FastifyInstance, dependencies: ControlDependencies): void {
  readingRoutes(app, dependencies);
  changingRoutes(app, dependencies);
}

function readingRoutes(app: FastifyInstance, dependencies: ControlDependencies): void {
  const { pool, status, organizations } = dependencies;

  app.get('/sandbox', async () => ({ routes: controlRoutes, state: await status() }));
  app.get('/sandbox/status', () => status());
  app.get('/sandbox/organizations', async () => ({ organizations: organizations() }));
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

function changingRoutes(app: FastifyInstance, dependencies: ControlDependencies): void {
  const { clock, changes, live, dispatcher, setSigning, keepClock, addOrganization } = dependencies;

  app.post('/sandbox/changes', async ({ body }) => {
    const applied = await changes.apply(readBody(changesSchema, body).changes);
    return { changes: applied.changes, events: applied.events };
  });
  app.post('/sandbox/random', async ({ body }) => {
    const { count, seed = dependencies.seed, types } = readBody(randomSchema, body);
    return changes.random({ count, seed, types });
  });
  app.post('/sandbox/live', async ({ body }) => {
    live.setRate(readBody(liveSchema, body).perMinute);
    return { perMinute: live.rate() };
  });
  app.post('/sandbox/organizations', async ({ body }, reply) =>
    reply.status(201).send(await addOrganization(readBody(organizationSchema, body))),
  );
  app.post('/sandbox/clock', async ({ body }) => {
    const { advanceSeconds, signatures } = readBody(clockSchema, body);
    if (signatures !== undefined) setSigning(signatures);
    clock.advance(advanceSeconds);
    await keepClock();
    dispatcher.wake();
    return { now: toText(clock.now()) };
  });
}
