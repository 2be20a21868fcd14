import { html, raw } from 'hono/html';
import type { Markup } from '../../../web/markup.ts';
import { visibleText } from '../../../web/visible-text.ts';
import { eventTypes } from '../../events/payloads.ts';
import type { Micros } from '../../timestamps.ts';
import type { PortalEndpoint } from '../read/endpoints.ts';
import type { ListedMessage, MessageFilter } from '../read/messages.ts';
import { readableTime } from '../relative-time.ts';
import type { WindowChoice } from '../time-window.ts';
import { messageRows, nothingHere } from './message-rows.ts';
import { messageStatuses, statusNames } from './status.ts';
import { windowFields } from './window-fields.ts';

export interface MessageListView {
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
  /** Time of the last message that was searched, if the search stopped before the end. */
  readonly searchedTo: string | undefined;
  readonly filtered: boolean;
}

/** All messages of the organization, by type, status, endpoint and time. */
export function messageList(view: MessageListView): Markup {
  const { base, now, messages, older, newest, searchedTo } = view;
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
${older !== undefined && html`<a class="button outline" href="${older}">${searchedTo === undefined ? 'Older messages' : 'Search further back'}</a>`}</nav>`
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
  messageStatuses.map((status) => [status, statusNames[status]] as const),
  filter.status,
)}
${select('endpoint', 'Endpoint', 'All endpoints', endpointChoices, filter.endpointId)}
${windowFields('filter', choice, ['any', '1h', '24h', '7d', 'custom'], wrong)}
<div class="actions"><button>Filter</button>${filtered && html`<a class="button outline" href="${base}/messages">Clear</a>`}</div></form>`;
}

const sentTo = ({ endpoints }: ListedMessage): string =>
  endpoints === 0 ? 'No endpoint' : `${endpoints} endpoint${endpoints === 1 ? '' : 's'}`;

function none({ base, filtered, endpoints, newest, searchedTo }: MessageListView): Markup {
  if (searchedTo !== undefined) {
    return nothingHere('No match so far', `The messages back to ${readableTime(searchedTo)} were searched.`);
  }
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
