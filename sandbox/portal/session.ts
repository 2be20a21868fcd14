import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'hono/html';
import type { Pool } from 'pg';
import type { AssetAddresses } from '../../web/assets.ts';
import { linkName, openLink, tokenOf } from '../../web/link.ts';
import { pageHeaders } from '../../web/page-headers.ts';
import { fromOwnPages } from '../../web/same-origin.ts';
import { visibleText } from '../../web/visible-text.ts';
import type { ServiceClock } from '../clock.ts';
import { Problem } from '../problem.ts';
import { examineLink, type LinkRefusal, type OpenLink } from './links.ts';
import { closedPage } from './views/door.ts';
import { type Frame, layout, type Page } from './views/layout.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The portal that the request's link opens. */
    portal: { readonly organizationId: string; readonly frame: Frame };
  }
}

export interface SessionDependencies {
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
