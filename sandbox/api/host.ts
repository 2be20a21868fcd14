import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../problem.ts';

/**
 * Refuses requests whose `Host` is not a name of this sandbox, which listens on `host`. Otherwise a page of
 * another site, whose name resolves to this machine (DNS rebinding), could read the answers.
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

/** Names without a dot, as of containers, or below private domains: no other site can have them. */
const privateName = /^[^.]+$|\.(internal|local|localhost|test)$/;

function namesUs(header: string | undefined, host: string): boolean {
  if (header === undefined || !URL.canParse(`http://${header}`)) return false;
  const { hostname } = new URL(`http://${header}`);
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
  return isAddress || privateName.test(hostname) || hostname === host.toLowerCase();
}
