import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import { badRequest, Problem } from '../problem.ts';

const setting = z.strictObject({ enabled: z.boolean() });

export interface PortalLinks {
  /**
   * Creates a link to the organization's portal, valid for 7 days (service.md 4), on the host by which the
   * caller reached the sandbox: a browser cannot use 0.0.0.0 or a port inside a container.
   */
  create(organizationId: string, reachedAt: string): Promise<string>;
}

/** `/external/configure_webhook` (service.md 2.1, 3.1, 4): whether events are dispatched for the organization. */
export function configureWebhook(app: FastifyInstance, pool: Pool, links: PortalLinks): void {
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
