import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html, raw } from 'hono/html';
import type { Pool } from 'pg';
import { type AssetAddresses, documentOf, pageHeaders } from '../../web/document.ts';
import { field, fromOwnPages, queryOf } from '../../web/form.ts';
import { linkName, openLink, tokenOf } from '../../web/link.ts';
import { type Markup, visibleText } from '../../web/parts.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import { Problem } from '../problem.ts';
import { fromText, type Micros, type ServiceClock, secondsToMicros, toText } from '../time.ts';
import { icons, readableTime, relativeTime } from './parts.ts';

/** What the portal's pages need. */
export interface PortalDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly dispatcher: Pick<Dispatcher, 'reload' | 'wake'>;
  /** The address of this server. Called only while the server listens. */
  readonly address: () => string;
  /** Receives errors that a page does not explain. */
  readonly report: (error: Error) => void;
}

/** Parameters of routes that have the id of a record in their path. */
export interface ById {
  Params: { id: string };
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The portal that the request's link opens. */
    portal: { readonly organizationId: string; readonly frame: Frame };
  }
}

interface SessionDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly assets: AssetAddresses;
}

/** A link does not open a portal. `refusal` says why. */
class LinkRefused extends Error {
  readonly statusCode = 403;
  readonly refusal: LinkRefusal;

  constructor(refusal: LinkRefusal) {
    super(`portal link ${refusal}`);
    this.refusal = refusal;
  }
}

const baseOf = (link: string): string => `/portal/o/${link}`;

/** Serves `/portal/{token}`, the link to a portal. */
export function doorRoute(app: FastifyInstance, { pool, clock, assets }: SessionDependencies): void {
  app.get<{ Params: { token: string } }>('/portal/:token', async ({ params: { token } }, reply) => {
    const link = await examineLink(pool, token, clock.now());
    if (typeof link === 'string') throw new LinkRefused(link);
    const base = baseOf(linkName(token));
    return await openLink(reply, assets, {
      token,
      site: 'portal',
      path: base,
      leadsTo: `${base}/endpoints`,
      title: 'Opening the webhook portal',
      words: html`<p>of <bdi>${visibleText(link.organization)}</bdi></p>`,
    });
  });
}

/** Lets only requests with an unexpired link of an organization that has webhooks enabled reach the routes of `app`. */
export function requireLink(app: FastifyInstance, { pool, clock, assets }: SessionDependencies): void {
  app.decorateRequest('portal');
  app.addHook<{ Params: { link: string } }>('onRequest', async (request) => {
    const { link } = request.params;
    const opened = await openedBy(request, link, pool, clock);
    const { organizationId, organization, expiresAt } = opened;
    const frame = { base: baseOf(link), organization, expiresAt, now: clock.now(), assets };
    request.portal = { organizationId, frame };
    if (request.method !== 'GET' && !fromOwnPages(request.headers)) {
      throw new Problem(403, 'Another site sent this request. Nothing was done.');
    }
  });
}

async function openedBy(
  request: FastifyRequest,
  link: string,
  pool: Pool,
  clock: ServiceClock,
): Promise<OpenLink> {
  const token = tokenOf(request.headers, 'portal', link);
  if (token === undefined || linkName(token) !== link) throw new LinkRefused('unknown');
  const opened = await examineLink(pool, token, clock.now());
  if (typeof opened === 'string') throw new LinkRefused(opened);
  return opened;
}

/** Answers with a page of the open portal. */
export async function show(
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page,
  status = 200,
): Promise<FastifyReply> {
  const text = String(await layout(request.portal.frame, page));
  return reply.status(status).headers(pageHeaders).send(text);
}

/** Shows every refusal as a page that says what to do. Unexpected errors go only to `report`. */
export function showProblems(
  app: FastifyInstance,
  assets: AssetAddresses,
  report: (error: Error) => void,
): void {
  app.setErrorHandler(async (error: Error & { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) report(error);
    const words = status < 500 ? error.message : 'The sandbox failed; its log says why.';
    const reason = error instanceof LinkRefused ? error.refusal : { status, words };
    const page = closedPage(assets, reason, request.portal?.frame.base);
    return reply
      .status(status)
      .headers(pageHeaders)
      .send(String(await page));
  });
}

/** What every page of an open portal needs. */
interface Frame {
  /** The address below which this portal's pages are: `/portal/o/{link}`. */
  readonly base: string;
  readonly organization: string;
  readonly expiresAt: string;
  /** The service's time, from which "3 minutes ago" is counted. */
  readonly now: Micros;
  readonly assets: AssetAddresses;
}

export interface Page {
  readonly title: string;
  readonly section: 'Endpoints' | 'Messages';
  /** Shown at the top: the result of the last request. */
  readonly notice?: string | undefined;
  readonly body: Markup;
}

/** A whole document: skip link, navigation, notice, the page, and until when the link is valid. */
function layout(frame: Frame, { title, section, notice, body }: Page): Markup {
  const { base, organization, expiresAt, now } = frame;
  const tab = (name: Page['section'], address: string, icon: Markup) =>
    html`<a href="${base}${address}" ${section === name ? raw('aria-current="page"') : ''}>${icon}${name}</a>`;
  return documentOf(
    frame.assets,
    `${title} · ${visibleText(organization)}`,
    html`<a class="skip" href="#main">Skip to the content</a>
<header class="top"><div class="wide">
  <p class="brand">${icons.mark}<span><strong>Webhooks</strong><bdi>${visibleText(organization)}</bdi></span></p>
  <nav class="tabs" aria-label="Portal">${tab('Endpoints', '/endpoints', icons.endpoint)}${tab('Messages', '/messages', icons.message)}</nav>
</div></header>
<main id="main" class="wide" tabindex="-1">
  <div id="notice" role="status">${notice && html`<p class="notice good">${icons.done}${notice}</p>`}</div>
  ${body}
</main>
<footer class="wide muted small">
  <span>This portal link opens until <time datetime="${expiresAt}Z">${readableTime(expiresAt)}</time> (${relativeTime(expiresAt, now)}).</span>
  <span>The service’s clock shows ${readableTime(toText(now))}.</span>
</footer>`,
  );
}

const refusals: Readonly<Record<LinkRefusal, { title: string; words: string; next: Markup }>> = {
  unknown: {
    title: 'This link opens nothing',
    words: 'It may have been cut short on its way here, or this browser has not opened it yet.',
    next: html`Open the whole link again, or ask for a new one with <code>POST /external/configure_webhook</code>.`,
  },
  expired: {
    title: 'This link has expired',
    words: 'A link to the webhook portal opens for 7 days.',
    next: html`Ask for a new one with <code>POST /external/configure_webhook</code>.`,
  },
  disabled: {
    title: 'Webhooks are disabled',
    words: 'While they are, the portal of this organization stays shut and no new events are sent.',
    next: html`Enable them with <code>PATCH /external/configure_webhook</code> and the body
<code>{"enabled": true}</code>; this link then opens again.`,
  },
};

const titles: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Not found',
  409: 'Not possible now',
  500: 'Something went wrong',
};

/** Says why nothing is shown, and what to do. `base` is the address of an open portal's pages. */
function closedPage(
  assets: AssetAddresses,
  reason: LinkRefusal | { readonly status: number; readonly words: string },
  base: string | undefined,
): Markup {
  const { title, words, next } =
    typeof reason === 'string'
      ? refusals[reason]
      : {
          title: titles[reason.status] ?? 'That did not work',
          words: reason.words,
          next: base === undefined ? '' : html`<a href="${base}/endpoints">Back to the endpoints</a>`,
        };
  return documentOf(
    assets,
    title,
    html`<main class="door"><p class="big-icon">${typeof reason === 'string' ? icons.lock : icons.warning}</p>
<h1>${title}</h1><p>${visibleText(words)}</p><p>${next}</p></main>`,
  );
}

/** Sentences about the previous request, by a word in the address, whose own text is never shown. */
const notices = {
  added: 'The endpoint was added. It receives messages from now on.',
  inspecting: 'The inspection URL is ready. What is sent to it appears below.',
  saved: 'The changes were saved.',
  rotated: 'The secret was rotated. Both secrets sign for the next 24 hours.',
  disabled: 'The endpoint is disabled. Its remaining attempts were cancelled.',
  enabled: 'The endpoint is active again.',
  removed: 'The endpoint was removed. Its remaining attempts were cancelled.',
  example: 'The example was sent.',
  resent: 'The message is being sent again.',
  replaying: 'The messages are being sent again. You see below how far it has come.',
  nothing: 'There is nothing to send again in that time.',
} as const;

type Notice = keyof typeof notices;

/** The notice that a request's address asks for, if any. */
export function noticeFor(request: FastifyRequest): string | undefined {
  const name = field(queryOf(request), 'done');
  return Object.hasOwn(notices, name) ? notices[name as Notice] : undefined;
}

/** service.md 4, 8: how long a link to the webhook portal is valid. */
const linkLifetimeSeconds = 7 * 24 * 3600;

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');

export async function createLink(
  pool: Pool,
  organizationId: string,
  token: string,
  now: Micros,
): Promise<void> {
  await pool.query(
    'insert into sandbox.portal_links (token_hash, organization_id, expires_at) values ($1, $2, $3)',
    [hashOf(token), organizationId, toText(now + secondsToMicros(linkLifetimeSeconds))],
  );
}

interface OpenLink {
  readonly organizationId: string;
  readonly organization: string;
  readonly expiresAt: string;
}

type LinkRefusal = 'unknown' | 'expired' | 'disabled';

/**
 * Returns the organization whose portal a token opens, or why it opens none: it does not exist, it is older
 * than 7 days (service.md 8), or webhooks are disabled (service.md 3.1).
 */
async function examineLink(pool: Pool, token: string, now: Micros): Promise<OpenLink | LinkRefusal> {
  const { rows } = await pool.query<OpenLink & { enabled: boolean }>({
    name: 'examine link',
    text: `select o.id as "organizationId", o.name as organization, o.webhooks_enabled as enabled,
        to_char(l.expires_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "expiresAt"
      from sandbox.portal_links l join sandbox.organizations o on o.id = l.organization_id
      where l.token_hash = $1`,
    values: [hashOf(token)],
  });
  const [link] = rows;
  if (link === undefined) return 'unknown';
  if (fromText(link.expiresAt) <= now) return 'expired';
  if (!link.enabled) return 'disabled';
  const { organizationId, organization, expiresAt } = link;
  return { organizationId, organization, expiresAt };
}
