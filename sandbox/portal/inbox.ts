import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { html } from 'hono/html';
import type { Pool } from 'pg';
import { Webhook } from 'standardwebhooks';
import { badge, copyable, type Markup } from '../../web/parts.ts';
import { inTransaction } from '../database.ts';
import { mint } from '../parts.ts';
import { notFound } from '../problem.ts';
import { fromText, type Micros, secondsToMicros, toText } from '../time.ts';
import { endpointHead, type PortalEndpoint, readEndpoint } from './endpoint.ts';
import { headers } from './message.ts';
import { icons, readableTime, timeAgo } from './parts.ts';
import { payloadText, sizeText } from './payload.ts';
import { type ById, noticeFor, type PortalDependencies, show } from './session.ts';

/** Creates temporary inspection URLs and shows the requests that they receive (service.md 6.5). */
export function inboxPages(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher, address } = dependencies;

  app.post('/inboxes', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const made = { endpointId: mint.newEndpointId(), secret: mint.newSecret(), token: mint.newToken() };
    await createInbox(pool, { organizationId, ...made, server: address(), now: clock.now() });
    await dispatcher.reload();
    return reply.redirect(`${frame.base}/endpoints/${made.endpointId}/inbox?done=inspecting`, 303);
  });

  app.get<ById>('/endpoints/:id/inbox', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const endpoint = await readEndpoint(pool, organizationId, request.params.id);
    const inbox = await readInbox(pool, endpoint.id);
    const requests = await readInboxRequests(pool, inbox.token);
    const body = inboxPage({ ...frame, endpoint, inbox, requests });
    return show(request, reply, { title: 'Inbox', section: 'Endpoints', notice: noticeFor(request), body });
  });
}

interface InboxView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoint: PortalEndpoint;
  readonly inbox: Inbox;
  readonly requests: readonly InboxRequest[];
}

/** service.md 6.5: shows the requests that a temporary inspection URL receives. */
function inboxPage({ base, now, endpoint, inbox, requests }: InboxView): Markup {
  const ended = fromText(inbox.expiresAt) <= now;
  return html`${endpointHead(base, endpoint, 'inbox', now)}
<div class="card inbox-head"><p class="with-icon">${icons.inbox}<span><strong>${ended ? 'This inspection URL has ended.' : 'Listening'}</strong>
${ended ? 'It answers 410. Remove the endpoint, or keep it to look at what arrived.' : html`Every request to this URL appears here and is answered with 204.`}</span></p>
<p>${copyable(endpoint.url, 'inspection URL')}</p>
<p class="muted small">${ended ? 'It ended' : 'It works until'} ${readableTime(inbox.expiresAt)}. The newest ${inboxRequestsKept} requests are kept.</p></div>
<h2>Requests</h2>
<div id="requests" data-live="1000" aria-live="polite">${
    requests.length > 0
      ? html`<ol class="cards">${requests.map((one) => arrived(base, one, now))}</ol>`
      : html`<div class="empty slim"><p class="big-icon pulse">${icons.inbox}</p><h3>Waiting for the first request</h3>
<p><a href="${base}/endpoints/${endpoint.id}/testing">Send an example event</a>, or post something to the URL yourself.</p></div>`
  }</div>`;
}

function arrived(base: string, request: InboxRequest, now: Micros): Markup {
  const { id, at, method, type, messageId, verified, body } = request;
  const name =
    messageId === null
      ? html`<strong>${method} request</strong>`
      : html`<strong><a href="${base}/messages/${messageId}"><code>${type}</code></a></strong>`;
  return html`<li class="card" id="request-${id}"><div class="row">${name}
<span class="badges">${verified ? badge('good', 'Signature valid') : badge('plain', 'No valid signature')}</span></div>
<p class="meta"><span>${timeAgo(at, now)}</span><span>${sizeText(body.length)}</span></p>
${body.length === 0 ? html`<p class="muted">It had no body.</p>` : payloadText(body.toString('utf8'), `Body of request ${id}`)}
${headers('Headers', request.headers)}</li>`;
}

interface Inbox {
  readonly token: string;
  readonly expiresAt: string;
}

/** A request as it arrived at an inspection URL. */
interface InboxRequest {
  readonly id: string;
  readonly at: string;
  readonly method: string;
  /** A JSON object. */
  readonly headers: string;
  readonly body: Buffer;
  /** Whether the endpoint's secret signed it. */
  readonly verified: boolean;
  /** The message that a verified request contained. */
  readonly messageId: string | null;
  readonly type: string | null;
}

/** How many requests an inbox keeps. Its page shows all of them, and the oldest are deleted. */
const inboxRequestsKept = 30;

/** @throws Problem 404 if the endpoint is not an inspection URL. */
async function readInbox(pool: Pool, endpointId: string): Promise<Inbox> {
  const { rows } = await pool.query<Inbox>(
    `select token, to_char(expires_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "expiresAt"
      from sandbox.inboxes where endpoint_id = $1`,
    [endpointId],
  );
  const [inbox] = rows;
  if (inbox === undefined) throw notFound('Inbox');
  return inbox;
}

async function readInboxRequests(pool: Pool, token: string): Promise<InboxRequest[]> {
  const { rows } = await pool.query<InboxRequest>(
    `select r.id::text as id, r.method, r.headers, r.body, r.verified, e.id as "messageId", e.type,
        to_char(r.at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as at
      from sandbox.inbox_requests r left join sandbox.events e on r.verified and e.id = r.message_id
      where r.token = $1 order by r.id desc limit $2`,
    [token, inboxRequestsKept],
  );
  return rows;
}

/** Inspection URLs are for trying things out, so they end after 7 days, like links to the portal. */
const inboxLifetimeSeconds = 7 * 24 * 3600;
/** A larger body is refused with 413. */
const bodyBytesMax = 2 * 1024 * 1024;

interface InboxAsked {
  readonly organizationId: string;
  readonly endpointId: string;
  readonly secret: string;
  readonly token: string;
  /** The address of this server. */
  readonly server: string;
  readonly now: Micros;
}

/** Creates a temporary inspection URL (service.md 6.5): an endpoint that the service itself answers. */
function createInbox(pool: Pool, asked: InboxAsked): Promise<void> {
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
