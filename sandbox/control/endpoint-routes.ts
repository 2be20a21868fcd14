import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { ServiceClock } from '../clock.ts';
import { inTransaction } from '../database/transaction.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import {
  addEndpoint,
  type Endpoint,
  endpointSchema,
  endpointUpdateSchema,
  listEndpoints,
  rotateSecret,
  rotationHours,
  setEndpointState,
  updateEndpoint,
} from '../delivery/endpoints.ts';
import { secondsToMicros, toText } from '../timestamps.ts';
import { readBody } from './body.ts';

export interface EndpointRouteDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly dispatcher: Dispatcher;
  readonly newEndpointId: () => string;
  readonly newSecret: () => string;
}

const stateSchema = z.strictObject({ state: z.enum(['active', 'disabled']) });
const rotateSchema = z.strictObject({ secret: endpointSchema.shape.secret });

interface ById {
  Params: { id: string };
}

export function endpointRoutes(app: FastifyInstance, dependencies: EndpointRouteDependencies): void {
  const { pool, clock, dispatcher, newEndpointId, newSecret } = dependencies;
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
    const made = { id, secret: newSecret(), now: toText(clock.now()) };
    const endpoint = await addEndpoint(pool, readBody(endpointSchema, body), made);
    await dispatcher.reload();
    return shown(endpoint);
  };
  app.post('/sandbox/endpoints', async ({ body }, reply) =>
    reply.status(201).send(await place(newEndpointId(), body)),
  );
  app.put<ById>('/sandbox/endpoints/:id', ({ params, body }) => place(params.id, body));
  app.patch<ById>('/sandbox/endpoints/:id', async ({ params, body }) => {
    const endpoint = await updateEndpoint(pool, params.id, readBody(endpointUpdateSchema, body));
    await dispatcher.reload();
    return shown(endpoint);
  });
  app.post<ById>('/sandbox/endpoints/:id/secret', async ({ params, body }) => {
    const { secret = newSecret() } = readBody(rotateSchema, body);
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
