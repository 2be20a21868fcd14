import type { FastifyInstance } from 'fastify';
import { html, raw } from 'hono/html';
import type { Pool } from 'pg';
import { field, queryOf } from '../../web/form.ts';
import { type Markup, visibleText } from '../../web/parts.ts';
import { eventTypes } from '../events.ts';
import type { Micros } from '../time.ts';
import { type PortalEndpoint, readEndpoints } from './endpoint.ts';
import { isEventType } from './endpoints.ts';
import {
  type MessageStatus,
  messageRows,
  messageStatuses,
  nothingHere,
  readWindow,
  type WindowChoice,
  windowFields,
  windowOf,
} from './parts.ts';
import { type PortalDependencies, show } from './session.ts';

/** The list of all messages of the organization, by type, status, endpoint and time (service.md 6.5). */
export function messagesRoute(app: FastifyInstance, { pool }: PortalDependencies): void {
  app.get('/messages', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const query = queryOf(request);
    const endpoints = await readEndpoints(pool, organizationId);
    const filter = readFilter(query, new Set(endpoints.map(({ id }) => id)));
    const choice = readWindow(query, 'any');
    const window = windowOf(choice, frame.now);
    const before = /^\d{1,18}$/.exec(field(query, 'before'))?.[0] ?? null;
    const rows =
      'wrong' in window ? [] : await readMessages(pool, organizationId, { ...filter, ...window }, before);
    const messages = rows.slice(0, messagesPerPage);
    const last = rows.length > messagesPerPage ? messages.at(-1)?.seq : undefined;
    const body = messageList({
      base: frame.base,
      now: frame.now,
      filter,
      choice,
      wrong: 'wrong' in window ? window.wrong : undefined,
      endpoints,
      messages,
      older: last === undefined ? undefined : at(frame.base, query, last),
      newest: before === null ? undefined : at(frame.base, query, undefined),
      filtered: choice.choice !== 'any' || Object.values(filter).some((value) => value !== null),
    });
    const status = 'wrong' in window ? 400 : 200;
    return show(request, reply, { title: 'Messages', section: 'Messages', body }, status);
  });
}

function readFilter(query: URLSearchParams, endpointIds: ReadonlySet<string>) {
  const type = field(query, 'type');
  const status = field(query, 'status');
  const endpointId = field(query, 'endpoint');
  return {
    type: isEventType(type) ? type : null,
    status: Object.hasOwn(messageStatuses, status) ? (status as MessageStatus) : null,
    endpointId: endpointIds.has(endpointId) ? endpointId : null,
  };
}

/** The address of the same list, starting with the messages before `before`. */
function at(base: string, query: URLSearchParams, before: string | undefined): string {
  const next = new URLSearchParams([...query].filter(([name, value]) => name !== 'before' && value !== ''));
  if (before !== undefined) next.set('before', before);
  return `${base}/messages${next.size === 0 ? '' : `?${next}`}`;
}

interface MessageListView {
  readonly base: string;
  readonly now: Micros;
  readonly filter: Pick<MessageFilter, 'type' | 'status' | 'endpointId'>;
  readonly choice: WindowChoice;
  /** What is wrong with the times that were typed. */
  readonly wrong: string | undefined;
  readonly endpoints: readonly PortalEndpoint[];
  readonly messages: readonly ListedMessage[];
  /** Address of the page with older messages, if there is one. */
  readonly older: string | undefined;
  /** Address of the newest page, if this is another. */
  readonly newest: string | undefined;
  readonly filtered: boolean;
}

/** All messages of the organization, by type, status, endpoint and time. */
function messageList(view: MessageListView): Markup {
  const { base, now, messages, older, newest } = view;
  const rows = messages.map((one) => ({ ...one, note: sentTo(one) }));
  return html`<div class="head"><div><h1>Messages</h1>
<p class="muted">Every event of your organization, and whether it has arrived.</p></div></div>
${filters(view)}
<div id="messages" ${newest === undefined ? raw('data-live="3000"') : ''}>${
    rows.length > 0 ? messageRows(base, rows, now, 'Messages, the newest first', 'Sent to') : none(view)
  }</div>
${
  (older !== undefined || newest !== undefined) &&
  html`<nav class="pages" aria-label="Pages">${newest !== undefined && html`<a class="button outline" href="${newest}">Newest</a>`}
${older !== undefined && html`<a class="button outline" href="${older}">Older messages</a>`}</nav>`
}`;
}

function filters({ base, filter, choice, wrong, endpoints, filtered }: MessageListView): Markup {
  const select = (
    name: string,
    label: string,
    all: string,
    options: readonly (readonly [string, string])[],
    chosen: string | null,
  ) =>
    html`<div><label for="filter-${name}">${label}</label><select id="filter-${name}" name="${name}"><option value="">${all}</option>${options.map(
      ([value, words]) =>
        html`<option value="${value}" ${value === chosen ? raw('selected') : ''}>${words}</option>`,
    )}</select></div>`;
  const endpointChoices = endpoints.map(({ id, url }) => [id, visibleText(url)] as const);
  return html`<form method="get" action="${base}/messages" class="filters" aria-label="Filter" novalidate>
${select(
  'type',
  'Event type',
  'All types',
  eventTypes.map((type) => [type, type] as const),
  filter.type,
)}
${select(
  'status',
  'Status',
  'Any status',
  Object.entries(messageStatuses).map(([status, { name }]) => [status, name] as const),
  filter.status,
)}
${select('endpoint', 'Endpoint', 'All endpoints', endpointChoices, filter.endpointId)}
${windowFields('filter', choice, ['any', '1h', '24h', '7d', 'custom'], wrong)}
<div class="actions"><button>Filter</button>${filtered && html`<a class="button outline" href="${base}/messages">Clear</a>`}</div></form>`;
}

const sentTo = ({ endpoints }: ListedMessage): string =>
  endpoints === 0 ? 'No endpoint' : `${endpoints} endpoint${endpoints === 1 ? '' : 's'}`;

function none({ base, filtered, endpoints, newest }: MessageListView): Markup {
  if (newest !== undefined)
    return nothingHere('No older messages', html`<a href="${newest}">Back to the newest</a>`);
  if (filtered) {
    return nothingHere(
      'No message matches',
      html`Widen the filter, or <a href="${base}/messages">show all messages</a>.`,
    );
  }
  return nothingHere(
    'No messages yet',
    endpoints.length === 0
      ? html`Events appear here as they happen. <a href="${base}/endpoints/new">Add an endpoint</a> to receive them.`
      : 'Events appear here as they happen.',
  );
}

/** Which messages are asked for. Null means any. */
interface MessageFilter {
  readonly type: string | null;
  readonly status: MessageStatus | null;
  /** Statuses are for this endpoint only, and messages that it did not choose are left out. */
  readonly endpointId: string | null;
  readonly from: string | null;
  readonly until: string | null;
}

interface ListedMessage {
  readonly seq: string;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly example: boolean;
  readonly status: MessageStatus;
  readonly endpoints: number;
}

const messagesPerPage = 50;
/** How many messages are searched for one page. With a time, older messages are found too. */
const messagesSearchedMax = 50_000;

/** Reads messages before `before`, the newest first, with the status that most needs attention. */
async function readMessages(
  pool: Pool,
  organizationId: string,
  { type, status, endpointId, from, until }: MessageFilter,
  before: string | null,
): Promise<ListedMessage[]> {
  const { rows } = await pool.query<ListedMessage>({
    name: 'portal messages',
    text: `
      with searched as (
        select e.seq, e.id, e.type, e.example, e.created
        from sandbox.events e
        where e.organization_id = $1 and ($2::text is null or e.type = $2)
          and ($3::timestamp is null or e.created >= $3) and ($4::timestamp is null or e.created < $4)
          and ($5::bigint is null or e.seq < $5)
        order by e.seq desc
        limit ${messagesSearchedMax})
      select e.seq::text as seq, e.id, e.type, e.example, s.status, s.endpoints,
        to_char(e.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created
      from searched e, lateral (
        select count(*)::integer as endpoints, case
          when bool_or(m.status = 'failed') then 'failed'
          when bool_or(m.status = 'retrying') then 'retrying'
          when bool_or(m.status = 'pending') then 'pending'
          when bool_or(m.status = 'delivered') then 'delivered'
          else 'missing' end as status
        from sandbox.message_standings m
        join sandbox.endpoints p on p.id = m.endpoint_id
        where m.event_seq = e.seq and (p.id = $7 or ($7::text is null and p.state <> 'removed'))) s
      where ($6::text is null or s.status = $6)
        and ($7::text is null or s.endpoints > 0 or (not e.example and exists (
          select from sandbox.endpoints q
          where q.id = $7 and (q.event_types = '{}' or e.type = any (q.event_types)))))
      order by e.seq desc
      limit ${messagesPerPage + 1}`,
    values: [organizationId, type, from, until, before, status, endpointId],
  });
  return rows;
}
