import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { Webhook } from 'standardwebhooks';
import { inTransaction } from '../database/transaction.ts';
import { fromText, type Micros, secondsToMicros, toText } from '../timestamps.ts';
import type { PortalDependencies } from './dependencies.ts';
import { inboxRequestsKept } from './read/inbox.ts';

/** Inspection URLs are for trying things out, so they end after 7 days, like links to the portal. */
const inboxLifetimeSeconds = 7 * 24 * 3600;
/** A larger body is refused with 413. */
const bodyBytesMax = 2 * 1024 * 1024;

export interface InboxAsked {
  readonly organizationId: string;
  readonly endpointId: string;
  readonly secret: string;
  readonly token: string;
  /** The address of this server. */
  readonly server: string;
  readonly now: Micros;
}

/** Creates a temporary inspection URL (service.md 6.5): an endpoint that the service itself answers. */
export function createInbox(pool: Pool, asked: InboxAsked): Promise<void> {
  const { organizationId, endpointId, secret, token, server, now } = asked;
  return inTransaction(pool, async (client) => {
    await client.query(
      `insert into sandbox.endpoints (id, organization_id, url, secret, created) values ($1, $2, $3, $4, $5)`,
      [endpointId, organizationId, addressOf(server, token), secret, toText(now)],
    );
    const until = toText(now + secondsToMicros(inboxLifetimeSeconds));
    await client.query('insert into sandbox.inboxes (token, endpoint_id, expires_at) values ($1, $2, $3)', [
      token,
      endpointId,
      until,
    ]);
  });
}

const addressOf = (server: string, token: string): string => `${server}/portal/inbox/${token}`;

/** Gives inspection URLs the present address of the server, because its port may differ after each start. */
export async function moveInboxes(pool: Pool, server: string): Promise<void> {
  await pool.query(
    `update sandbox.endpoints p set url = $1 || i.token from sandbox.inboxes i where i.endpoint_id = p.id`,
    [addressOf(server, '')],
  );
}

interface KnownInbox {
  readonly expiresAt: string;
  readonly secret: string;
}

/** `/portal/inbox/{token}` stores any request and answers 204, or 410 once the URL has expired. */
export function inboxRoute(
  app: FastifyInstance,
  { pool, clock }: Pick<PortalDependencies, 'pool' | 'clock'>,
): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: bodyBytesMax }, (_request, body, done) =>
      done(null, body),
    );
    scope.all<{ Params: { token: string } }>('/portal/inbox/:token', async (request, reply) => {
      const { token } = request.params;
      const inbox = await findInbox(pool, token);
      if (inbox === undefined) return reply.status(404).send({ detail: 'No such inspection URL.' });
      if (fromText(inbox.expiresAt) <= clock.now()) {
        return reply.status(410).send({ detail: 'This inspection URL has ended.' });
      }
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      const messageId = signedMessage(inbox.secret, request.headers, body);
      await pool.query(
        `with old as (delete from sandbox.inbox_requests where token = $1 and id <= (select id
            from sandbox.inbox_requests where token = $1 order by id desc offset ${inboxRequestsKept - 1} limit 1))
          insert into sandbox.inbox_requests (token, at, method, headers, body, verified, message_id)
          values ($1, $2, $3, $4, $5, $6, $7)`,
        [
          token,
          toText(clock.now()),
          request.method,
          JSON.stringify(request.headers),
          body,
          messageId !== undefined,
          messageId,
        ],
      );
      return reply.status(204).send();
    });
  });
}

async function findInbox(pool: Pool, token: string): Promise<KnownInbox | undefined> {
  const { rows } = await pool.query<KnownInbox>({
    name: 'find inbox',
    text: `select p.secret, to_char(i.expires_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "expiresAt"
      from sandbox.inboxes i join sandbox.endpoints p on p.id = i.endpoint_id and p.state <> 'removed'
      where i.token = $1`,
    values: [token],
  });
  return rows[0];
}

/**
 * Returns the id of the message that the secret signed; undefined without a valid signature. It is verified
 * as by a receiver (service.md 5.4), with headers of any vendor's prefix (5.3).
 */
function signedMessage(secret: string, headers: IncomingHttpHeaders, body: Buffer): string | undefined {
  const name = Object.keys(headers).find((one) => one.endsWith('-signature'));
  if (name === undefined) return undefined;
  const part = (which: string) => String(headers[name.replace(/signature$/, which)] ?? '');
  const [id, timestamp, signature] = [part('id'), part('timestamp'), part('signature')];
  try {
    new Webhook(secret).verify(body.toString('utf8'), {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
    });
    return id;
  } catch {
    return undefined;
  }
}
