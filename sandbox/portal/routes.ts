import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import type { Clock } from '../clock.ts';
import { listEndpoints } from '../delivery/endpoints.ts';
import { Problem } from '../problem.ts';
import { openLink } from './links.ts';

export interface PortalDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
}

/** `/portal/{token}`: what the link of `POST /external/configure_webhook` opens. */
export function portalRoutes(app: FastifyInstance, { pool, clock }: PortalDependencies): void {
  app.get<{ Params: { token: string } }>('/portal/:token', async ({ params }) => {
    const organizationId = await openLink(pool, params.token, clock.now());
    if (organizationId === undefined) throw new Problem(403, 'This portal link is not valid, or no longer.');
    const endpoints = (await listEndpoints(pool)).filter((one) => one.organizationId === organizationId);
    return { organizationId, endpoints: endpoints.map(({ id, url, state }) => ({ id, url, state })) };
  });
}
