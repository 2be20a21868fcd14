import { html, raw } from 'hono/html';
import type { Pool } from 'pg';
import { badge, copyable, type Markup, visibleText } from '../../web/parts.ts';
import { notFound } from '../problem.ts';
import type { Micros } from '../time.ts';
import { endpointBadge, icons, type MessageStatus, timeAgo } from './parts.ts';

type EndpointTab = 'overview' | 'inbox' | 'testing' | 'settings';

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

/** Whether a text can be an id of an endpoint or a message. Postgres refuses some other texts. */
export const isId = (text: string): boolean => /^\w{1,100}$/.test(text);

/** An endpoint as the portal shows it. */
export interface PortalEndpoint {
  readonly id: string;
  readonly url: string;
  /** No chosen type means all of them (service.md 6.1.2). */
  readonly eventTypes: readonly string[];
  readonly state: 'active' | 'disabled' | 'removed';
  readonly created: string;
  readonly failingSince: string | null;
  readonly secret: string;
  readonly previousSecretUntil: string | null;
  /** The token of the inspection URL, if this endpoint is one. */
  readonly inboxToken: string | null;
}

const columns = `p.id, p.url, p.event_types as "eventTypes", p.state, p.secret, i.token as "inboxToken",
  to_char(p.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created,
  to_char(p.failing_since, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "failingSince",
  to_char(p.previous_secret_until, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "previousSecretUntil"`;

const source = 'sandbox.endpoints p left join sandbox.inboxes i on i.endpoint_id = p.id';

export async function readEndpoints(pool: Pool, organizationId: string): Promise<PortalEndpoint[]> {
  const { rows } = await pool.query<PortalEndpoint>(
    `select ${columns} from ${source} where p.organization_id = $1 and p.state <> 'removed' order by p.position`,
    [organizationId],
  );
  return rows;
}

/** @throws Problem 404 if it does not exist, was removed, or belongs to another organization */
export async function readEndpoint(pool: Pool, organizationId: string, id: string): Promise<PortalEndpoint> {
  if (!isId(id)) throw notFound('Endpoint');
  const { rows } = await pool.query<PortalEndpoint>(
    `select ${columns} from ${source} where p.organization_id = $1 and p.id = $2 and p.state <> 'removed'`,
    [organizationId, id],
  );
  const [endpoint] = rows;
  if (endpoint === undefined) throw notFound('Endpoint');
  return endpoint;
}

/** Results of an endpoint's newest deliveries. A delivery that was replaced by a later one does not count. */
export interface Activity {
  readonly endpointId: string;
  readonly delivered: number;
  readonly failed: number;
  readonly open: number;
  readonly lastAt: string | null;
}

/** How many of the newest deliveries the figures count, so that they stay fast. */
export const activityDeliveries = 500;

/** SQL condition that the message of delivery `d` was sent again, so that the later delivery counts. */
export const sentAgainLater = `exists (select from sandbox.deliveries l
              where l.event_seq = d.event_seq and l.endpoint_id = d.endpoint_id and l.id > d.id)`;

export async function readActivity(pool: Pool, endpointIds: readonly string[]): Promise<Activity[]> {
  const { rows } = await pool.query<Activity>({
    name: 'portal activity',
    text: `select p.id as "endpointId", a.* from sandbox.endpoints p, lateral (
        select count(*) filter (where state = 'delivered')::integer as delivered,
          count(*) filter (where state = 'failed' or (state = 'cancelled' and attempts > 0
            and not ${sentAgainLater}))::integer as failed,
          count(*) filter (where state in ('waiting', 'in_flight'))::integer as open,
          (select to_char(max(t.at), 'YYYY-MM-DD"T"HH24:MI:SS.US') from sandbox.attempts t
            where t.delivery_id = any (array_agg(d.id))) as "lastAt"
        from (select id, event_seq, endpoint_id, state, attempts from sandbox.deliveries
          where endpoint_id = p.id and id > p.deliveries_after order by id desc
          limit ${activityDeliveries}) d) a
      where p.id = any ($1::text[])`,
    values: [endpointIds],
  });
  return rows;
}

export interface RecentMessage {
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly example: boolean;
  readonly status: MessageStatus;
  readonly attempts: number;
}

export const messageColumns = `e.id, e.type, e.example, to_char(e.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created,
  s.status, s.attempts`;

/** Without the limit, Postgres would compute the standings of all messages and join them. */
export const standing = `lateral (select status, attempts from sandbox.message_standings
  where event_seq = e.seq and endpoint_id = $1 limit 1) s`;

/** The newest examples that were sent to an endpoint. */
export async function readRecentExamples(
  pool: Pool,
  endpointId: string,
  limit: number,
): Promise<RecentMessage[]> {
  const { rows } = await pool.query<RecentMessage>({
    name: 'portal recent examples',
    text: `select ${messageColumns} from sandbox.events e, ${standing} where e.example
      and e.organization_id = (select organization_id from sandbox.endpoints where id = $1)
      order by e.seq desc limit $2`,
    values: [endpointId, limit],
  });
  return rows;
}
