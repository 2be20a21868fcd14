import { randomBytes } from 'node:crypto';
import type { ClientBase, Pool } from 'pg';
import { z } from 'zod';
import { eventTypes } from '../events.ts';
import { notFound } from '../problem.ts';

export interface Endpoint {
  readonly id: string;
  readonly organizationId: string;
  readonly url: string;
  /** No chosen types means all of them (service.md 6.1.2). */
  readonly eventTypes: readonly string[];
  readonly state: 'active' | 'disabled' | 'removed';
  readonly secret: string;
  readonly previousSecret: string | null;
  readonly previousSecretUntil: string | null;
}

export const endpointSchema = z.strictObject({
  url: z.string().refine((text) => wrongWithAddress(text) === undefined, {
    error: ({ input }) => wrongWithAddress(String(input)),
  }),
  eventTypes: z.array(z.enum(eventTypes)).default([]),
  organizationId: z.uuid().optional(),
  /** `whsec_` and base64 of 24 to 64 bytes. If absent, a secret is generated. */
  secret: z
    .string()
    .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/)
    .optional(),
});
type EndpointAsked = z.infer<typeof endpointSchema>;

const columns = `id, organization_id as "organizationId", url, event_types as "eventTypes", state, secret,
  previous_secret as "previousSecret",
  to_char(previous_secret_until, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "previousSecretUntil"`;

/** Adds an endpoint. An endpoint that had this id becomes as asked for, and active; it keeps what waits for it. */
export async function addEndpoint(
  pool: Pool,
  asked: EndpointAsked,
  made: { readonly id: string; readonly secret: string; readonly now: string },
): Promise<Endpoint> {
  const { rows } = await pool.query<Endpoint>(
    `insert into sandbox.endpoints as endpoints (id, organization_id, url, event_types, secret, created)
      select $1, o.id, $3, $4, $5, $6 from sandbox.organizations o
      where o.id = coalesce($2, (select id from sandbox.organizations order by position limit 1))
      on conflict (id) do update set url = excluded.url, event_types = excluded.event_types,
        secret = coalesce($7, endpoints.secret), state = 'active', failing_since = null
      returning ${columns}`,
    [
      made.id,
      asked.organizationId ?? null,
      asked.url,
      asked.eventTypes,
      asked.secret ?? made.secret,
      made.now,
      asked.secret ?? null,
    ],
  );
  const [endpoint] = rows;
  if (endpoint === undefined) throw notFound('organization');
  return endpoint;
}

export async function listEndpoints(pool: Pool): Promise<Endpoint[]> {
  const { rows } = await pool.query<Endpoint>(
    `select ${columns} from sandbox.endpoints where state <> 'removed' order by position`,
  );
  return rows;
}

/** @throws Problem 404 for an id that no endpoint ever had */
export async function requireEndpoint(pool: Pool, id: string): Promise<void> {
  const { rowCount } = await pool.query('select from sandbox.endpoints where id = $1', [id]);
  if (rowCount === 0) throw notFound(`endpoint ${id}`);
}

export const endpointUpdateSchema = z.strictObject({
  url: endpointSchema.shape.url.optional(),
  eventTypes: z.array(z.enum(eventTypes)).optional(),
});

export async function updateEndpoint(
  pool: Pool,
  id: string,
  asked: z.infer<typeof endpointUpdateSchema>,
): Promise<Endpoint> {
  const { rows } = await pool.query<Endpoint>(
    `update sandbox.endpoints set url = coalesce($2, url), event_types = coalesce($3, event_types)
      where id = $1 and state <> 'removed' returning ${columns}`,
    [id, asked.url ?? null, asked.eventTypes ?? null],
  );
  const [endpoint] = rows;
  if (endpoint === undefined) throw notFound(`endpoint ${id}`);
  return endpoint;
}

/** Hours for which messages are still signed with the previous secret, too. */
export const rotationHours = 24;

/** Sets a new secret. Until `until`, messages are signed with both, so that receivers can change over. */
export async function rotateSecret(pool: Pool, id: string, secret: string, until: string): Promise<Endpoint> {
  const { rows } = await pool.query<Endpoint>(
    `update sandbox.endpoints set previous_secret = secret, previous_secret_until = $3, secret = $2
      where id = $1 and state <> 'removed' returning ${columns}`,
    [id, secret, until],
  );
  const [endpoint] = rows;
  if (endpoint === undefined) throw notFound(`endpoint ${id}`);
  return endpoint;
}

/** Sets an endpoint's state. Any except `active` cancels remaining attempts (service.md 3.2, 6.4). */
export async function setEndpointState(
  client: ClientBase,
  id: string,
  state: Endpoint['state'],
): Promise<void> {
  const { rowCount } = await client.query(
    `update sandbox.endpoints set state = $2, failing_since = null where id = $1 and state <> 'removed'`,
    [id, state],
  );
  if (rowCount === 0) throw notFound(`endpoint ${id}`);
  if (state === 'active') return;
  await client.query(
    `update sandbox.deliveries set state = 'cancelled' where endpoint_id = $1 and state in ('waiting', 'in_flight')`,
    [id],
  );
}

/** Servers and proxies on the way may cut longer addresses. */
const addressLengthMax = 2_048;

/** Says what is wrong with an endpoint's address, for the person who typed it; else undefined. */
export function wrongWithAddress(text: string): string | undefined {
  if (text === '') return 'Enter the address that receives your webhooks.';
  if (text.length > addressLengthMax) return `An address can have at most ${addressLengthMax} characters.`;
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return 'Begin the address with https:// or http://.';
  if (!URL.canParse(text))
    return 'This is not a web address. It should look like https://example.com/webhooks.';
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return `Webhooks are sent over https:// or http://, not ${url.protocol}//.`;
  }
  if (url.username !== '' || url.password !== '') {
    return 'Leave out the user name and password: every message is signed instead.';
  }
  if (url.hash !== '') return 'Leave out the part from # on: it is never sent to a server.';
  return undefined;
}

/** Draws a signing secret: `whsec_` and base64 of random bytes. */
export const newSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;
