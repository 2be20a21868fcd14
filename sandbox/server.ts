import { randomBytes, randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { refuseForeignHosts } from './api/host.ts';
import { newApiKey, type Organization } from './api/keys.ts';
import { apiRoutes } from './api/routes.ts';
import { createServer } from './api/server.ts';
import { requireControl } from './control/access.ts';
import { endpointRoutes } from './control/endpoint-routes.ts';
import { faultRoutes } from './control/fault-routes.ts';
import { addOrganization } from './control/organizations.ts';
import { controlPlane } from './control/routes.ts';
import { createStatus } from './control/status.ts';
import { newSigningSecret } from './delivery/signing-secret.ts';
import { keepClock, newMessageId, type Parts } from './parts.ts';
import { moveInboxes } from './portal/inbox.ts';
import { createLink } from './portal/links.ts';
import { portalRoutes } from './portal/routes.ts';
import { toText } from './timestamps.ts';

export interface RunningServer {
  /** `http://host:port` */
  readonly url: string;
  /** The token that control routes require. Each start creates another. */
  readonly controlToken: string;
  close(): Promise<void>;
}

/** Serves API, portal and control routes on one address. */
export async function serve(parts: Parts, host: string, port: number): Promise<RunningServer> {
  const { stores, clock, cache, faults, dispatcher, keys } = parts;
  const { pool } = stores;
  const app = createServer(parts.report);
  refuseForeignHosts(app, host);
  const links = {
    create: async (organizationId: string, reachedAt: string) => {
      const token = mint.newToken();
      await createLink(pool, organizationId, token, clock.now());
      return `${reachedAt === '' ? addressOf(app, host) : `http://${reachedAt}`}/portal/${token}`;
    },
  };
  apiRoutes(app, { pool, keys, links, faults: { pool, ...faults }, cache });
  portalRoutes(app, {
    pool,
    clock,
    dispatcher,
    address: () => addressOf(app, host),
    ...mint,
    report: parts.report,
  });
  const controlToken = mint.newToken();
  app.register(async (control) => {
    requireControl(control, controlToken);
    controlRoutes(control, parts);
  });
  await app.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new Error(`port ${port} of ${host} is taken: choose another --port`);
  });
  await moveInboxes(pool, addressOf(app, host));
  await dispatcher.reload();
  return { url: addressOf(app, host), controlToken, close: () => app.close() };
}

function controlRoutes(app: FastifyInstance, parts: Parts): void {
  const { stores, clock, cache, faults, disturbances, dispatcher, changes, live, signing, seed } = parts;
  const { pool } = stores;
  faultRoutes(app, { pool, faults, disturbances });
  endpointRoutes(app, { pool, clock, dispatcher, ...mint });
  controlPlane(app, {
    pool,
    clock,
    changes,
    live,
    dispatcher,
    seed,
    setSigning: (mode) => {
      signing.mode = mode;
    },
    keepClock: () => keepClock(parts),
    status: createStatus({
      pool,
      now: () => toText(clock.now()),
      busy: dispatcher.busy,
      revision: cache.asOf,
    }),
    organizations: () => parts.organizations,
    addOrganization: (asked) => organize(parts, asked),
  });
}

/** Identifiers and secrets that nobody can guess. */
const mint = {
  newEndpointId: () => `ep_${randomBytes(14).toString('hex')}`,
  newMessageId,
  newSecret: newSigningSecret,
  newToken: () => randomBytes(24).toString('base64url'),
};

async function organize(
  { stores, organizations, keys }: Parts,
  asked: { readonly name?: string | undefined; readonly apiKey?: string | undefined },
): Promise<Organization> {
  const { name = 'Another organization', apiKey = newApiKey() } = asked;
  const organization = { id: randomUUID(), name, apiKey };
  await addOrganization(stores.pool, organization);
  organizations.push(organization);
  keys.set(apiKey, organization.id);
  return organization;
}

function addressOf(app: FastifyInstance, host: string): string {
  const { port } = app.server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
