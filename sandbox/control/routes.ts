import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import { type Query, readCount, readText } from '../api/query.ts';
import { randomTypes } from '../changes/random.ts';
import { changesSchema } from '../changes/schema.ts';
import type { ChangeService } from '../changes/service.ts';
import type { Clock } from '../clock.ts';
import { inTransaction } from '../database/transaction.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import { type Disturbance, disturbanceSchema } from '../delivery/disturbance.ts';
import { addEndpoint, endpointSchema, listEndpoints, setEndpointState } from '../delivery/endpoints.ts';
import { badRequest } from '../problem.ts';
import { toText } from '../timestamps.ts';
import { readDeliveries, readEvents } from './events.ts';
import { readStatus } from './status.ts';

export interface ControlDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly changes: ChangeService;
  readonly dispatcher: Dispatcher;
  readonly seed: number;
  readonly newEndpointId: () => string;
  readonly newSecret: () => string;
  readonly setDisturbance: (disturbance: Disturbance) => Promise<void>;
  readonly setSigning: (signing: 'real' | 'virtual') => void;
  /** Keeps the clock's place, so that a restart doesn't go back. */
  readonly keepClock: () => Promise<void>;
}

/** What `GET /sandbox` lists; docs/sandbox.md says more. */
export const controlRoutes = {
  'GET /sandbox': 'these routes and the state',
  'GET /sandbox/status': 'counts of records, events and deliveries; quiet when nothing is left to deliver',
  'GET /sandbox/events?after=0&limit=100': 'events in the order in which they were written',
  'GET /sandbox/deliveries?state=dropped&after=0&limit=100': 'deliveries, of one state or all',
  'POST /sandbox/changes': '{changes: [{type, ...}]}: all applied in order, or none',
  'POST /sandbox/random': '{count, seed?, types?}: that many random valid changes',
  'POST /sandbox/endpoints':
    '{url, eventTypes?, secret?, organizationId?}: a webhook endpoint and its secret',
  'GET /sandbox/endpoints': 'the endpoints',
  'DELETE /sandbox/endpoints/{id}': 'removes an endpoint and cancels its remaining attempts',
  'POST /sandbox/endpoints/{id}/state': '{state: "active" | "disabled"}',
  'POST /sandbox/disturb': '{duplicate?, shuffle?, delayMs?, drop?, seed?}: disturbs deliveries; {} ends it',
  'POST /sandbox/clock': '{advanceSeconds?, signatures?: "real" | "virtual"}: moves the service’s clock',
} as const;

const randomSchema = z.strictObject({
  count: z.int().min(1).max(1_000_000),
  seed: z.int().optional(),
  types: z.array(z.enum(randomTypes)).min(1).optional(),
});
const clockSchema = z.strictObject({
  advanceSeconds: z.number().min(0).max(1e9).default(0),
  signatures: z.enum(['real', 'virtual']).optional(),
});
const stateSchema = z.strictObject({ state: z.enum(['active', 'disabled']) });

/** @throws Problem 400 that names what is wrong with the body. */
function read<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body ?? {});
  if (result.success) return result.data;
  throw badRequest(
    result.error.issues.map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`).join('; '),
  );
}

interface ById {
  Params: { id: string };
}

export function controlPlane(app: FastifyInstance, dependencies: ControlDependencies): void {
  const { pool, clock, changes, dispatcher, setDisturbance, setSigning, keepClock } = dependencies;
  const status = () => readStatus(pool, toText(clock.now()), dispatcher.busy);

  app.get('/sandbox', async () => ({ routes: controlRoutes, state: await status() }));
  app.get('/sandbox/status', status);
  app.get<{ Querystring: Query }>('/sandbox/events', async ({ query }) => ({
    events: await readEvents(
      pool,
      Number(readText(query, 'after') ?? 0),
      readCount(query, 'limit', 100, 10_000),
    ),
  }));
  app.get<{ Querystring: Query }>('/sandbox/deliveries', async ({ query }) => {
    const limit = readCount(query, 'limit', 100, 10_000);
    const after = Number(readText(query, 'after') ?? 0);
    return { deliveries: await readDeliveries(pool, readText(query, 'state'), after, limit) };
  });
  app.post('/sandbox/changes', async ({ body }) => changes.apply(read(changesSchema, body).changes));
  app.post('/sandbox/random', async ({ body }) => {
    const { count, seed = dependencies.seed, types } = read(randomSchema, body);
    return changes.random({ count, seed, types });
  });
  app.post('/sandbox/disturb', async ({ body }) => {
    const disturbance = read(disturbanceSchema, body);
    await setDisturbance(disturbance);
    return disturbance;
  });
  app.post('/sandbox/clock', async ({ body }) => {
    const { advanceSeconds, signatures } = read(clockSchema, body);
    if (signatures !== undefined) setSigning(signatures);
    clock.advance(advanceSeconds);
    await keepClock();
    dispatcher.wake();
    return { now: toText(clock.now()) };
  });
  endpointRoutes(app, dependencies);
}

function endpointRoutes(app: FastifyInstance, dependencies: ControlDependencies): void {
  const { pool, clock, dispatcher, newEndpointId, newSecret } = dependencies;
  const moveTo = async (id: string, state: 'active' | 'disabled' | 'removed') => {
    await inTransaction(pool, (client) => setEndpointState(client, id, state));
    await dispatcher.reload();
    return { id, state };
  };

  app.get('/sandbox/endpoints', async () => ({ endpoints: await listEndpoints(pool) }));
  app.post('/sandbox/endpoints', async ({ body }, reply) => {
    const made = { id: newEndpointId(), secret: newSecret(), now: toText(clock.now()) };
    const endpoint = await addEndpoint(pool, read(endpointSchema, body), made);
    await dispatcher.reload();
    const { id, url, eventTypes, state, secret } = endpoint;
    return reply.status(201).send({ id, url, eventTypes, state, secret });
  });
  app.delete<ById>('/sandbox/endpoints/:id', ({ params }) => moveTo(params.id, 'removed'));
  app.post<ById>('/sandbox/endpoints/:id/state', ({ params, body }) =>
    moveTo(params.id, read(stateSchema, body).state),
  );
}
