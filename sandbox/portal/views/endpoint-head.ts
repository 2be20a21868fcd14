import { html, raw } from 'hono/html';
import { badge } from '../../../web/badge.ts';
import { copyable } from '../../../web/copyable.ts';
import type { Markup } from '../../../web/markup.ts';
import { visibleText } from '../../../web/visible-text.ts';
import type { Micros } from '../../timestamps.ts';
import { icons } from '../icons.ts';
import type { PortalEndpoint } from '../read/endpoints.ts';
import { endpointBadge } from './status.ts';
import { timeAgo } from './time.ts';

export type EndpointTab = 'overview' | 'inbox' | 'testing' | 'settings';

const tabNames: Readonly<Record<EndpointTab, string>> = {
  overview: 'Overview',
  inbox: 'Inbox',
  testing: 'Testing',
  settings: 'Settings',
};

/** The head of an endpoint's pages: its address, its state, what is wrong, and links to its pages. */
export function endpointHead(base: string, endpoint: PortalEndpoint, tab: EndpointTab, now: Micros): Markup {
  const { id, url, state, failingSince, inboxToken } = endpoint;
  const address = `${base}/endpoints/${id}`;
  const tabs = (Object.keys(tabNames) as EndpointTab[]).filter(
    (one) => one !== 'inbox' || inboxToken !== null,
  );
  return html`<p class="crumbs"><a href="${base}/endpoints">${icons.back}Endpoints</a></p>
<div id="endpoint-head" data-live="3000"><div class="row"><h1 class="address"><bdi>${visibleText(url)}</bdi></h1>
<span class="badges">${inboxToken !== null && badge('busy', 'Inspection URL')}${endpointBadge(state, failingSince)}</span></div>
<p class="meta">${copyable(id, 'endpoint id')}<span>Added ${timeAgo(endpoint.created, now)}</span></p>
${state === 'disabled' && disabledBanner(address)}
${state === 'active' && failingSince !== null && failingBanner(failingSince, now)}</div>
<nav class="tabs inner" aria-label="Endpoint">${tabs.map(
    (one) =>
      html`<a href="${address}${one === 'overview' ? '' : `/${one}`}" ${one === tab ? raw('aria-current="page"') : ''}>${tabNames[one]}</a>`,
  )}</nav>`;
}

/** service.md 3.2: "Enable Endpoint". */
const disabledBanner = (address: string): Markup => html`<div class="banner bad">
<p class="with-icon">${icons.warning}<span><strong>This endpoint is disabled.</strong> Nothing is sent to it, and its remaining attempts were cancelled.
Once it is enabled, recover what it missed below.</span></p>
<form method="post" action="${address}/state"><input type="hidden" name="state" value="active"><button>Enable Endpoint</button></form></div>`;

const failingBanner = (since: string, now: Micros): Markup => html`<div class="banner uneasy">
<p class="with-icon">${icons.warning}<span><strong>All attempts have failed since ${timeAgo(since, now)}.</strong>
An endpoint is disabled when that goes on for 5 days. Any success ends it.</span></p></div>`;
