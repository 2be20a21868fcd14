import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { isSameSecret } from '../../web/link.ts';
import { Problem } from '../problem.ts';

/**
 * Lets only requests with the control token reach the routes, and none from web pages: they show secrets of
 * every organization, and any user of the machine can reach its loopback address.
 */
export function requireControl(app: FastifyInstance, token: string): void {
  app.addHook('onRequest', async ({ headers }, reply) => {
    if (askedByPage(headers)) throw new Problem(403, 'Control routes refuse requests from web pages.');
    if (!isSameSecret(headers.authorization ?? '', `Bearer ${token}`)) {
      reply.header('www-authenticate', 'Bearer');
      throw new Problem(401, 'Control routes need the control token: Authorization: Bearer TOKEN.');
    }
  });
}

/** Browsers name the requesting page in Sec-Fetch-Site: `none` for an address that a person typed. */
function askedByPage(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined || (headers['sec-fetch-site'] ?? 'none') !== 'none';
}
