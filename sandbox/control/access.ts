import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../problem.ts';

/**
 * Lets only requests with the control token reach the routes of `app`, and none that a web page asks for: they show
 * keys and secrets of every organization, and any user of the machine can reach its loopback.
 * @param host the name or address that the sandbox listens on
 */
export function requireControl(app: FastifyInstance, token: string, host: string): void {
  app.addHook('onRequest', async ({ headers }, reply) => {
    if (!namesUs(headers.host, host)) {
      throw new Problem(
        403,
        'This Host is no name of the sandbox: ask by its address, or by the name of --host.',
      );
    }
    if (askedByPage(headers)) throw new Problem(403, 'Control routes answer no web page.');
    if (!carries(token, headers.authorization)) {
      reply.header('www-authenticate', 'Bearer');
      throw new Problem(401, 'Control routes need the control token: Authorization: Bearer TOKEN.');
    }
  });
}

/** A page that had its own name resolve to this machine would name itself: only addresses and our names are ours. */
function namesUs(header: string | undefined, host: string): boolean {
  if (header === undefined || !URL.canParse(`http://${header}`)) return false;
  const { hostname } = new URL(`http://${header}`);
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 || hostname === 'localhost' || hostname === host;
}

/** Browsers name the page that asks in Sec-Fetch-Site, which is `none` for an address that a person typed. */
function askedByPage(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined || (headers['sec-fetch-site'] ?? 'none') !== 'none';
}

/** Digests have one length, which comparing in constant time needs. */
function carries(token: string, authorization: string | undefined): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`));
}
