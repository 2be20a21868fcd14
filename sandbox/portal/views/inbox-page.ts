import { html } from 'hono/html';
import { badge } from '../../../web/badge.ts';
import { copyable } from '../../../web/copyable.ts';
import type { Markup } from '../../../web/markup.ts';
import type { Micros } from '../../timestamps.ts';
import { fromText } from '../../timestamps.ts';
import { icons } from '../icons.ts';
import { payloadText, sizeText } from '../payload.ts';
import type { PortalEndpoint } from '../read/endpoints.ts';
import type { Inbox, InboxRequest } from '../read/inbox.ts';
import { inboxRequestsKept } from '../read/inbox.ts';
import { readableTime } from '../relative-time.ts';
import { headers } from './attempts.ts';
import { endpointHead } from './endpoint-head.ts';
import { timeAgo } from './time.ts';

export interface InboxView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoint: PortalEndpoint;
  readonly inbox: Inbox;
  readonly requests: readonly InboxRequest[];
}

/** service.md 6.5: shows the requests that a temporary inspection URL receives. */
export function inboxPage({ base, now, endpoint, inbox, requests }: InboxView): Markup {
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
