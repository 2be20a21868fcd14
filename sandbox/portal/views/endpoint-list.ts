import { html } from 'hono/html';
import { badge } from '../../../web/badge.ts';
import type { Markup } from '../../../web/markup.ts';
import { visibleText } from '../../../web/visible-text.ts';
import type { Micros } from '../../timestamps.ts';
import { icons } from '../icons.ts';
import type { Activity } from '../read/activity.ts';
import type { PortalEndpoint } from '../read/endpoints.ts';
import { endpointBadge } from './status.ts';
import { timeAgo } from './time.ts';

export interface EndpointListView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoints: readonly PortalEndpoint[];
  readonly activity: ReadonlyMap<string, Activity>;
}

/** All endpoints with their state and the results of their newest messages, or what to do if there is none. */
export function endpointList(view: EndpointListView): Markup {
  const { base, endpoints } = view;
  if (endpoints.length === 0) return noEndpoints(base);
  return html`<div class="head"><div><h1>Endpoints</h1>
<p class="muted">Where your events are sent. Each endpoint has its own secret and its own choice of event types.</p></div>
<a class="button" href="${base}/endpoints/new">${icons.plus}Add endpoint</a></div>
<ul class="cards" id="endpoints" data-live="3000">${endpoints.map((one) => card(view, one))}</ul>`;
}

function card({ base, now, activity }: EndpointListView, endpoint: PortalEndpoint): Markup {
  const { id, url, state, failingSince, eventTypes, inboxToken } = endpoint;
  const done = activity.get(id);
  return html`<li class="card" id="${id}">
<div class="row"><a class="title stretched" href="${base}/endpoints/${id}"><bdi>${visibleText(url)}</bdi></a>
<span class="badges">${inboxToken !== null && badge('busy', 'Inspection URL')}${endpointBadge(state, failingSince)}</span></div>
<p class="meta"><span>${eventChoice(eventTypes)}</span>${figures(done)}
<span>${done?.lastAt ? html`Last attempt ${timeAgo(done.lastAt, now)}` : 'No attempts yet'}</span></p></li>`;
}

function figures(activity: Activity | undefined): Markup | '' {
  if (activity === undefined) return '';
  const { delivered, failed, open } = activity;
  return html`<span><b>${delivered}</b> delivered</span>${failed > 0 && html`<span class="bad-text"><b>${failed}</b> failed</span>`}
${open > 0 && html`<span><b>${open}</b> on the way</span>`}`;
}

/** service.md 6.1.2: no chosen type means all. */
const eventChoice = (eventTypes: readonly string[]): string =>
  eventTypes.length === 0
    ? 'All events'
    : eventTypes.length === 1
      ? (eventTypes[0] ?? '')
      : `${eventTypes.length} event types`;

const noEndpoints = (base: string): Markup => html`<section class="empty">
<p class="big-icon">${icons.endpoint}</p>
<h1>Receive your first event</h1>
<p>Events about your connections, documents and meters are sent to the endpoints that you add here.</p>
<div class="actions"><a class="button" href="${base}/endpoints/new">${icons.plus}Add endpoint</a></div>
<hr>
<h2>No server yet?</h2>
<p>A temporary inspection URL is a working endpoint that shows you live what arrives, for 7 days.</p>
<form method="post" action="${base}/inboxes"><button class="outline">${icons.inbox}Create an inspection URL</button></form>
</section>`;
