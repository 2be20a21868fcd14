import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import { disturbanceSchema } from '../delivery/disturbance.ts';
import type { Disturbances } from '../delivery/disturbances.ts';
import { requireEndpoint } from '../delivery/endpoints.ts';
import { faultSchema } from '../faults/fault.ts';
import type { Faults } from '../faults/faults.ts';
import { readBody } from './body.ts';

export interface FaultRouteDependencies {
  readonly pool: Pool;
  readonly faults: Faults;
  readonly disturbances: Disturbances;
}

const faultBody = z.looseObject({}).pipe(faultSchema);

/** Routes that make the service misbehave: its API (faults) and its deliveries (disturbances). */
export function faultRoutes(
  app: FastifyInstance,
  { pool, faults, disturbances }: FaultRouteDependencies,
): void {
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
