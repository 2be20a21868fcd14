import { html } from 'hono/html';
import { badge } from '../../../web/badge.ts';
import { copyable } from '../../../web/copyable.ts';
import type { Markup } from '../../../web/markup.ts';
import { visibleText } from '../../../web/visible-text.ts';
import { fromText, type Micros } from '../../timestamps.ts';
import { icons } from '../icons.ts';
import { payloadText, sizeText } from '../payload.ts';
import type { Attempt, Message, Standing } from '../read/message.ts';
import { attemptsShownMax } from '../read/message.ts';
import { attemptList } from './attempts.ts';
import { statusBadge } from './status.ts';
import { timeAgo, timeInFull } from './time.ts';

export interface MessageView {
  readonly base: string;
  readonly now: Micros;
  readonly message: Message;
  readonly standings: readonly Standing[];
  readonly attempts: readonly Attempt[];
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
