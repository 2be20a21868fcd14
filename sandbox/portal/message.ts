import { STATUS_CODES } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { html } from 'hono/html';
import type { Pool } from 'pg';
import { pageHeaders } from '../../web/document.ts';
import { field, formOf } from '../../web/form.ts';
import { badge, copyable, type Markup, visibleText } from '../../web/parts.ts';
import { notFound } from '../problem.ts';
import { fromText, type Micros, toText } from '../time.ts';
import { isId, readEndpoint } from './endpoint.ts';
import { icons, type MessageStatus, statusBadge, timeAgo, timeInFull } from './parts.ts';
import { payloadText, sizeText } from './payload.ts';
import { replayFailed, resendMessage } from './replays.ts';
import { type ById, noticeFor, type PortalDependencies, show } from './session.ts';

/** Shows a message with its payload and attempts, and sends it again (service.md 6.5). */
export function messageRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  pageRoutes(app, dependencies);
  againRoutes(app, dependencies);
}

function pageRoutes(app: FastifyInstance, { pool }: PortalDependencies): void {
  const mine = ({ portal, params }: FastifyRequest<ById>) =>
    readMessage(pool, portal.organizationId, params.id);

  app.get<ById>('/messages/:id', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const message = await mine(request);
    const [standings, attempts] = await Promise.all([
      readStandings(pool, organizationId, message.seq),
      readMessageAttempts(pool, message.seq),
    ]);
    const body = messagePage({ ...frame, message, standings, attempts });
    const notice = noticeFor(request);
    return show(request, reply, { title: message.type, section: 'Messages', notice, body });
  });

  app.get<ById>('/messages/:id/payload', async (request, reply) => {
    const { id, payload } = await mine(request);
    return reply
      .headers({
        ...pageHeaders,
        'content-type': 'application/json',
        'content-disposition': `attachment; filename="${id.replace(/[^\w-]/g, '_')}.json"`,
      })
      .send(payload);
  });
}

function againRoutes(app: FastifyInstance, { pool, clock, dispatcher }: PortalDependencies): void {
  const asked = async (request: FastifyRequest<ById>) => {
    const { organizationId, frame } = request.portal;
    const message = await readMessage(pool, organizationId, request.params.id);
    const endpoint = await readEndpoint(pool, organizationId, field(formOf(request), 'endpoint'));
    return { message, endpoint, base: frame.base, now: toText(clock.now()) };
  };

  app.post<ById>('/messages/:id/resend', async (request, reply) => {
    const { message, endpoint, base, now } = await asked(request);
    await resendMessage(pool, message.seq, endpoint.id, now);
    dispatcher.wake();
    return reply.redirect(`${base}/messages/${message.id}?done=resent`, 303);
  });

  app.post<ById>('/messages/:id/replay-since', async (request, reply) => {
    const { message, endpoint, base, now } = await asked(request);
    const since = { endpointId: endpoint.id, from: null, until: null, sinceSeq: message.seq, now };
    const count = await replayFailed(pool, since, true);
    dispatcher.wake();
    return reply.redirect(
      `${base}/endpoints/${endpoint.id}?done=${count > 0 ? 'replaying' : 'nothing'}`,
      303,
    );
  });
}

/** A message: its payload, and its attempts and their results at each endpoint (service.md 6.5). */
export function messagePage(view: MessageView): Markup {
  const { base, now, message, standings, attempts } = view;
  const { id, type, created, example, payload } = message;
  const address = `${base}/messages/${id}`;
  return html`<p class="crumbs"><a href="${base}/messages">${icons.back}Messages</a></p>
<div class="row"><h1 class="address"><code>${type}</code></h1>${example && badge('plain', 'Example')}</div>
<p class="meta">${copyable(id, 'message id')}<span>Written ${timeInFull(created, now)}</span></p>
<div class="message">
<section aria-labelledby="deliveries"><h2 id="deliveries">Deliveries</h2>
<div id="standings" data-live="1000">${
    standings.length === 0
      ? html`<p class="muted">It was sent to no endpoint. <a href="${base}/endpoints/new">Add one</a> to receive messages.</p>`
      : standings.map((one) => delivery(view, address, one))
  }
${attempts.length >= attemptsShownMax && html`<p class="muted small">The newest ${attemptsShownMax} attempts are shown.</p>`}</div></section>
<section aria-labelledby="payload"><div class="head"><h2 id="payload">Payload</h2>
<span class="meta"><span>${sizeText(Buffer.byteLength(payload))}</span><a href="${address}/payload">Download</a></span></div>
${payloadText(payload, 'Payload text')}</section></div>`;
}

interface Message {
  readonly seq: string;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly example: boolean;
  readonly payload: string;
}

/** The state of a message for one endpoint. `missing` if nothing was ever sent. */
interface Standing {
  readonly endpointId: string;
  readonly url: string;
  readonly endpointState: 'active' | 'disabled' | 'removed';
  readonly status: MessageStatus;
  readonly attempts: number;
  readonly nextDue: string | null;
  readonly inFlight: boolean;
}

interface Attempt {
  readonly endpointId: string;
  readonly deliveryId: string;
  readonly number: number;
  readonly at: string;
  readonly status: number | null;
  readonly durationMs: number;
  readonly requestHeaders: string;
  readonly responseHeaders: string | null;
  readonly responseBody: string | null;
  readonly error: string | null;
  readonly duplicate: boolean;
  /** The kind of replay that it belongs to. Null for the first delivery and its retries. */
  readonly replay: 'message' | 'failed' | 'missing' | null;
}

/** @throws Problem 404 if it does not exist or belongs to another organization */
export async function readMessage(pool: Pool, organizationId: string, id: string): Promise<Message> {
  if (!isId(id)) throw notFound('Message');
  const { rows } = await pool.query<Message>(
    `select seq::text as seq, id, type, example, payload, to_char(created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created
      from sandbox.events where organization_id = $1 and id = $2`,
    [organizationId, id],
  );
  const [message] = rows;
  if (message === undefined) throw notFound('Message');
  return message;
}

/** Reads the standing of the message for every endpoint that it went to or can be sent to. */
export async function readStandings(pool: Pool, organizationId: string, seq: string): Promise<Standing[]> {
  const { rows } = await pool.query<Standing>(
    `select p.id as "endpointId", p.url, p.state as "endpointState", coalesce(s.status, 'missing') as status,
        coalesce(s.attempts, 0) as attempts, coalesce(s.in_flight, false) as "inFlight",
        to_char(s.next_due, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "nextDue"
      from sandbox.endpoints p
      left join sandbox.message_standings s on s.endpoint_id = p.id and s.event_seq = $2
      where p.organization_id = $1 and (p.state <> 'removed' or s.event_seq is not null) order by p.position`,
    [organizationId, seq],
  );
  return rows;
}

/** How many attempts a page shows at most. These are the newest. */
const attemptsShownMax = 200;

export async function readMessageAttempts(pool: Pool, seq: string): Promise<Attempt[]> {
  const { rows } = await pool.query<Attempt>(
    `select d.endpoint_id as "endpointId", d.id::text as "deliveryId", a.number, a.status, a.error, a.duplicate,
        a.duration_ms as "durationMs", a.request_headers as "requestHeaders",
        a.response_headers as "responseHeaders", a.response_body as "responseBody", r.kind as replay,
        to_char(a.at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as at
      from sandbox.deliveries d join sandbox.attempts a on a.delivery_id = d.id
      left join sandbox.replays r on r.id = d.replay_id
      where d.event_seq = $1 order by a.at desc, d.id desc, a.number desc limit $2`,
    [seq, attemptsShownMax],
  );
  return rows;
}

interface MessageView {
  readonly base: string;
  readonly now: Micros;
  readonly message: Message;
  readonly standings: readonly Standing[];
  readonly attempts: readonly Attempt[];
}

function delivery(
  { base, now, message, attempts }: MessageView,
  address: string,
  standing: Standing,
): Markup {
  const { endpointId, url, endpointState, status, nextDue } = standing;
  const mine = attempts.filter((one) => one.endpointId === endpointId);
  const removed = endpointState === 'removed';
  const name = removed
    ? html`<bdi>${visibleText(url)}</bdi>`
    : html`<a href="${base}/endpoints/${endpointId}"><bdi>${visibleText(url)}</bdi></a>`;
  return html`<article class="card" id="${endpointId}">
<div class="row"><strong class="title">${name}</strong><span class="badges">${removed && badge('plain', 'Removed')}
${endpointState === 'disabled' && badge('bad', 'Disabled')}${statusBadge(status)}</span></div>
${nextDue !== null && html`<p class="meta"><span>${fromText(nextDue) > now ? html`Next attempt ${timeAgo(nextDue, now)}` : 'The next attempt is due.'}</span></p>`}
${mine.length > 0 ? attemptList(address, standing, mine, now) : notTried(address, message, standing)}</article>`;
}

function notTried(
  address: string,
  message: Message,
  { endpointId, endpointState, status }: Standing,
): Markup | '' {
  if (status === 'pending') return html`<p class="muted">The first attempt is about to be made.</p>`;
  if (endpointState === 'removed') return html`<p class="muted">It was never sent here.</p>`;
  if (endpointState === 'disabled')
    return html`<p class="muted">It was never sent here. Enable the endpoint to send it.</p>`;
  return html`<div class="row"><p class="muted">${message.example ? 'This example went to another endpoint.' : 'It was never sent here.'}</p>
<form method="post" action="${address}/resend"><input type="hidden" name="endpoint" value="${endpointId}"><button class="outline small">Send to this endpoint</button></form></div>`;
}

const origins: Readonly<Record<NonNullable<Attempt['replay']>, string>> = {
  message: 'Resent',
  failed: 'Replayed',
  missing: 'Recovered',
};

/** The attempts of a message at one endpoint, the newest first, each with its answer and a menu of options. */
const attemptList = (
  address: string,
  standing: Standing,
  attempts: readonly Attempt[],
  now: Micros,
): Markup =>
  html`<ol class="attempts">${attempts.map((one) => attemptItem(address, standing, one, now))}</ol>`;

function attemptItem(address: string, standing: Standing, attempt: Attempt, now: Micros): Markup {
  const { deliveryId, number, at, status, durationMs, replay, duplicate } = attempt;
  const key = `${deliveryId}-${number}${duplicate ? '-copy' : ''}`;
  const good = status !== null && status >= 200 && status < 300;
  return html`<li id="attempt-${key}"><details class="attempt" id="answer-${key}"><summary>
<span class="badges">${badge(good ? 'good' : 'bad', answerOf(attempt))}<strong>Attempt ${number}</strong>
${replay !== null && html`<span>${origins[replay]}</span>`}${duplicate && html`<span>Second copy</span>`}</span>
<small>${timeInFull(at, now)} · ${durationMs.toLocaleString('en')} ms</small></summary>
<div class="attempt-body">${attempt.error !== null && html`<p class="bad-text">${visibleText(attempt.error)}</p>`}
${attempt.responseBody !== null && responseOf(attempt.responseBody)}
${headers('Answer headers', attempt.responseHeaders)}${headers('Sent headers', attempt.requestHeaders)}</div></details>
${options(address, standing, number, key)}</li>`;
}

const answerOf = ({ status }: Attempt): string =>
  status === null ? 'No answer' : `${status} ${STATUS_CODES[status] ?? ''}`.trim();

const responseOf = (body: string): Markup =>
  body === ''
    ? html`<p class="muted">The answer had no body.</p>`
    : html`<h4>Answer</h4>${payloadText(body, 'Answer body')}`;

/** service.md 6.5: a message is resent from the options menu of an attempt. */
const options = (
  address: string,
  { endpointId, endpointState }: Standing,
  number: number,
  key: string,
): Markup | '' =>
  endpointState !== 'active'
    ? ''
    : html`<details class="menu" id="menu-${key}"><summary aria-label="Options of attempt ${number}" title="Options">${icons.more}</summary>
<div class="menu-items"><form method="post" action="${address}/resend"><input type="hidden" name="endpoint" value="${endpointId}"><button>Resend message</button></form>
<form method="post" action="${address}/replay-since"><input type="hidden" name="endpoint" value="${endpointId}"><button>Replay all failures since this message</button></form></div></details>`;

/** Shows stored headers: a JSON object of names with one or several values. */
export function headers(title: string, kept: string | null): Markup | '' {
  if (kept === null) return '';
  const pairs = Object.entries(JSON.parse(kept) as Record<string, string | string[]>);
  if (pairs.length === 0) return '';
  return html`<details class="folded"><summary>${title}</summary><dl class="headers">${pairs.map(
    ([name, value]) =>
      html`<div><dt>${visibleText(name)}</dt><dd><bdi>${visibleText([value].flat().join(', '))}</bdi></dd></div>`,
  )}</dl></details>`;
}
