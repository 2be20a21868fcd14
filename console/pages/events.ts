import { html } from 'hono/html';
import { connectOptions } from '../../app/temporal/place.ts';
import { eventTypes, kindOfType } from '../../contract/event.ts';
import { failureTypes } from '../../contract/failures.ts';
import { canonicalUuid } from '../../contract/ids.ts';
import { eventOutcomes } from '../../contract/names.ts';
import { label } from '../../contract/words.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import type { EventFilter } from '../../db/read/event-filter.ts';
import { placeText, readPlace } from '../../db/read/event-place.ts';
import { type EventDetails, type JournalledEvent, listEvents, readEvent } from '../../db/read/events.ts';
import type { Markup } from '../../web/markup.ts';
import { type Asking, asked, type MakePage, mayAct, oneOf } from '../asking.ts';
import {
  actButton,
  address,
  ago,
  choice,
  facts,
  filters,
  inFull,
  nothing,
  outcomeBadge,
  pager,
  rowLink,
  section,
  table,
  text,
  textField,
} from '../parts.ts';

/** The filter in an address. An invalid time or id is ignored. */
export function filterOf(query: URLSearchParams): EventFilter {
  const company = asked(query, 'company');
  return {
    type: asked(query, 'type'),
    outcome: oneOf(query, 'outcome', eventOutcomes),
    recordId: asked(query, 'record'),
    companyId: company === undefined ? undefined : canonicalUuid(company),
    code: asked(query, 'code'),
    since: timeOf(asked(query, 'since')),
    until: timeOf(asked(query, 'until')),
  };
}

const timeOf = (value: string | undefined): string | undefined => {
  if (value === undefined) return undefined;
  const ms = Date.parse(/[Zz]|[+-]\d\d:\d\d$/.test(value) ? value : `${value}Z`);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
};

/** A filter as values of an address. */
export const asQuery = (filter: EventFilter): Record<string, string | undefined> => ({
  type: filter.type,
  outcome: filter.outcome,
  record: filter.recordId,
  company: filter.companyId,
  code: filter.code,
  since: filter.since,
  until: filter.until,
});

export const eventList: MakePage = async (asking) => {
  const { deps, query, now } = asking;
  const filter = filterOf(query);
  const before = asked(query, 'before');
  const after = before === undefined ? undefined : readPlace(before);
  const { events, next } = await listEvents(deps.db, filter, { limit: consoleBounds.rows, after });
  const values = asQuery(filter);
  const filtered = Object.values(values).some((value) => value !== undefined);
  const replay = address('/act/replay', { ...values, back: address('/events', values) });
  return {
    title: 'Events',
    section: 'Events',
    live: after === undefined,
    head: html`<div class="head"><div><h1>Events</h1><p class="muted">Every event that the service sent.</p></div>
${filtered && mayAct(asking) && html`<span class="actions">${actButton(replay, 'Replay these')}</span>`}</div>
${filters(
  '/events',
  [
    choice(
      'outcome',
      'Outcome',
      'Any',
      eventOutcomes.map((value) => ({ value, words: value })),
      filter.outcome,
    ),
    choice(
      'type',
      'Type',
      'All types',
      eventTypes.map((value) => ({ value, words: value })),
      filter.type,
    ),
    choice(
      'code',
      'Failure',
      'Any or none',
      Object.keys(failureTypes).map((value) => ({ value, words: value })),
      filter.code,
    ),
    textField('record', 'Record', filter.recordId),
    textField('company', 'Company', filter.companyId),
    textField('since', 'Since (UTC)', filter.since),
    textField('until', 'Until (UTC)', filter.until),
  ],
  filtered,
)}`,
    body: html`${
      events.length > 0
        ? eventTable(events, now)
        : next !== null
          ? nothing('No event matches so far', 'The next page searches earlier events.')
          : nothing(
              filtered ? 'No event matches' : 'No event yet',
              filtered
                ? html`The filter hides the others: <a href="/events">show all events</a>.`
                : 'Events appear here when the service sends them.',
            )
    }${pager(next === null ? undefined : address('/events', { ...values, before: placeText(next) }), after && address('/events', values))}`,
  };
};

export const eventTable = (rows: readonly JournalledEvent[], now: number): Markup =>
  table(
    'Events',
    [
      {
        name: 'Event',
        of: ({ id, type }) =>
          html`${rowLink(`/events/${encodeURIComponent(id)}`, html`<code>${text(type)}</code>`)}<small class="id">${text(id)}</small>`,
      },
      { name: 'Outcome', of: ({ outcome }) => outcomeBadge(outcome) },
      { name: 'Record', of: ({ recordId }) => html`<small class="id">${text(recordId)}</small>` },
      { name: 'Why', of: ({ error }) => html`<small>${text(error?.slice(0, 120))}</small>` },
      { name: 'Received', end: true, of: ({ receivedAt }) => ago(receivedAt, now) },
    ],
    rows,
    ({ id }) => id,
  );

export const eventPage: MakePage = async (asking) => {
  const { deps, params, query, now } = asking;
  const { id: named = '' } = params;
  // Postgres cannot store NUL characters.
  const event = named.includes('\0') ? undefined : await readEvent(deps.db, named);
  if (event === undefined) return undefined;
  const { id, type, outcome } = event;
  const at = `/events/${encodeURIComponent(id)}`;
  return {
    title: type,
    section: 'Events',
    body: html`<p class="crumbs"><a href="/events">Events</a></p>
<div class="head"><h1 class="address"><code>${text(type)}</code></h1><span class="badges">${outcomeBadge(outcome)}
${mayAct(asking) && actButton(address('/act/replay', { id, back: at }), 'Replay')}</span></div>
<div class="card">${facts([
      ['Event', html`<code>${text(id)}</code>`],
      ['Record', event.recordId && recordLink(event)],
      [
        'Company',
        event.companyId && html`<a href="/companies/${event.companyId}"><code>${event.companyId}</code></a>`,
      ],
      ['Why', event.error && text(event.error)],
      ['Attempts', event.attempts > 0 && event.attempts],
    ])}</div>
${section(
  'Times',
  html`<div class="card">${facts(
    (
      [
        'occurredAt',
        'receivedAt',
        'recordedAt',
        'appliedAt',
        'nextAttemptAt',
        'rangeStart',
        'rangeEnd',
        'payloadDroppedAt',
      ] as const
    )
      .filter((name) => event[name] !== null)
      .map((name) => [label(name), inFull(event[name], now)] as const),
  )}</div>`,
)}
${section('Workflow', workflow(asking, event))}
${section('Signed body', payload(event, at, query.get('show') === 'payload'))}`,
  };
};

function recordLink({ type, recordId }: EventDetails): Markup {
  const of = kindOfType(type);
  const kind = of === 'interval' ? 'meter' : of;
  return html`<a href="${address('/trace', { kind, id: recordId ?? '' })}"><code>${text(recordId)}</code></a>`;
}

function workflow({ deps }: Asking, { workflowId, workflowRunId }: EventDetails): Markup {
  if (workflowId === null) return html`<p class="muted">No workflow is recorded.</p>`;
  const { temporalUi } = deps;
  const to =
    temporalUi === undefined
      ? undefined
      : `${temporalUi}/namespaces/${encodeURIComponent(connectOptions(deps.temporal).namespace)}/workflows/${encodeURIComponent(workflowId)}/${encodeURIComponent(workflowRunId ?? '')}`;
  return html`<div class="card">${facts([
    [
      'Workflow',
      to === undefined
        ? html`<code>${text(workflowId)}</code>`
        : html`<a href="${to}"><code>${text(workflowId)}</code></a>`,
    ],
    ['Run', workflowRunId && html`<code>${text(workflowRunId)}</code>`],
  ])}</div>`;
}

/** How many characters of a payload the page shows at most. */
const payloadMax = 60_000;

function payload({ payload, body, payloadDroppedAt }: EventDetails, at: string, shown: boolean): Markup {
  if (payloadDroppedAt !== null)
    return html`<p class="muted">The payload was dropped because of its age. The id is kept.</p>`;
  if (!shown)
    return html`<div class="card row"><p>It may hold data of a customer.</p><a class="button outline small" href="${at}?show=payload">Show it</a></div>`;
  const signed = body?.toString('utf8') ?? payload ?? '';
  return html`<pre class="payload" tabindex="0" role="region" aria-label="Signed body"><code>${text(signed.slice(0, payloadMax))}</code></pre>
${signed.length > payloadMax && html`<p class="muted small">Only the first ${payloadMax.toLocaleString('en')} characters are shown.</p>`}`;
}
