import type { Pool } from 'pg';
import { notFound } from '../../problem.ts';

/** Whether a text can be an id of an endpoint or a message. Postgres refuses some other texts. */
export const isId = (text: string): boolean => /^\w{1,100}$/.test(text);

/** An endpoint as the portal shows it. */
export interface PortalEndpoint {
  readonly id: string;
  readonly url: string;
  /** No chosen type means all of them (service.md 6.1.2). */
  readonly eventTypes: readonly string[];
  readonly state: 'active' | 'disabled' | 'removed';
  readonly created: string;
  readonly failingSince: string | null;
  readonly secret: string;
  readonly previousSecretUntil: string | null;
  /** The token of the inspection URL, if this endpoint is one. */
  readonly inboxToken: string | null;
}

const columns = `p.id, p.url, p.event_types as "eventTypes", p.state, p.secret, i.token as "inboxToken",
  to_char(p.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created,
  to_char(p.failing_since, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "failingSince",
  to_char(p.previous_secret_until, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "previousSecretUntil"`;

const source = 'sandbox.endpoints p left join sandbox.inboxes i on i.endpoint_id = p.id';

export async function readEndpoints(pool: Pool, organizationId: string): Promise<PortalEndpoint[]> {
  const { rows } = await pool.query<PortalEndpoint>(
    `select ${columns} from ${source} where p.organization_id = $1 and p.state <> 'removed' order by p.position`,
    [organizationId],
  );
  return rows;
}

/** @throws Problem 404 if it does not exist, was removed, or belongs to another organization */
export async function readEndpoint(pool: Pool, organizationId: string, id: string): Promise<PortalEndpoint> {
  if (!isId(id)) throw notFound('Endpoint');
  const { rows } = await pool.query<PortalEndpoint>(
    `select ${columns} from ${source} where p.organization_id = $1 and p.id = $2 and p.state <> 'removed'`,
    [organizationId, id],
  );
  const [endpoint] = rows;
  if (endpoint === undefined) throw notFound('Endpoint');
  return endpoint;
}
