import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../problem.ts';

/**
 * Refuses requests whose `Host` is not a name of this sandbox. A web page of another site can have its own
 * name resolve to this machine (DNS rebinding); the browser then lets the page read the answers, but still
 * sends the page's name as `Host`.
 * @param host the name or address that the sandbox listens on
 */
export function refuseForeignHosts(app: FastifyInstance, host: string): void {
  app.addHook('onRequest', async ({ headers }) => {
    if (namesUs(headers.host, host)) return;
    throw new Problem(
      403,
      'This Host is not a name of the sandbox: ask by its address, by localhost, by the name of --host, or by a name of a private network.',
    );
  });
}

/**
 * Names that no public DNS server resolves, so that no other site can have them. They have no dot, as names
 * of containers, or are below a domain that is reserved for private networks.
 */
const privateName = /^[^.]+$|\.(internal|local|localhost|test)$/;

function namesUs(header: string | undefined, host: string): boolean {
  if (header === undefined || !URL.canParse(`http://${header}`)) return false;
  const { hostname } = new URL(`http://${header}`);
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
  return isAddress || privateName.test(hostname) || hostname === host.toLowerCase();
}
