import { html } from 'hono/html';
import { connectOptions } from '../../app/temporal/place.ts';
import { eventTypes, kindOfType } from '../../contract/event.ts';
import { failureTypes } from '../../contract/failures.ts';
import { eventOutcomes } from '../../contract/names.ts';
import { label } from '../../contract/words.ts';
import type { Executor } from '../../db/connection/connect.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import {
  type EventDetails,
  type EventFilter,
  type JournalledEvent,
  listEvents,
  placeText,
  readEvent,
  readPlace,
} from '../../db/read/events.ts';
import {
  companyOf,
  type KnownRecord,
  knownOfRecords,
  namesOfRecords,
  type RecordKey,
} from '../../db/records/names.ts';
import type { Markup } from '../../web/parts.ts';
import {
  type Asking,
  asGiven,
  asked,
  givenCompany,
  givenText,
  givenTime,
  givenWord,
  isGiven,
  type MakePage,
  mayAct,
  wrongOf,
} from '../asking.ts';
import {
  actButton,
  address,
  at,
  capital,
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
  unusable,
} from '../parts.ts';

/** Reads the filter of an address: its values as they were given, and what they select. */
export async function givenEvents({ deps, query, now }: Pick<Asking, 'deps' | 'query' | 'now'>) {
  const values = {
    type: givenText(query, 'type'),
    outcome: givenWord(query, 'outcome', eventOutcomes),
    record: givenText(query, 'record'),
    company: await givenCompany(query, 'company', deps.db),
    code: givenWord(query, 'code', Object.keys(failureTypes)),
    since: givenTime(query, 'since', now),
    until: givenTime(query, 'until', now),
  };
  const filter: EventFilter = {
    type: values.type.value,
    outcome: values.outcome.value,
    recordId: values.record.value,
    companyId: values.company.value,
    code: values.code.value,
    since: values.since.value,
    until: values.until.value,
  };
  return { values, filter };
}

/** A filter as values of the address of an action, which has to mean the same at any time. */
const asQuery = ({ recordId, companyId, ...filter }: EventFilter) => ({
  ...(filter as Pick<EventFilter, 'type' | 'outcome' | 'code' | 'since' | 'until'>),
  record: recordId,
  company: companyId,
});

export const eventList: MakePage = async (asking) => {
  const { deps, query, now } = asking;
  const { values, filter } = await givenEvents(asking);
  const before = asked(query, 'before');
  const after = before === undefined ? undefined : readPlace(before);
  const isUsable = wrongOf(values).length === 0;
  const { events, next } = isUsable
    ? await listEvents(deps.db, filter, { limit: consoleBounds.rows, after })
    : { events: [], next: null };
  const filtered = isGiven(values);
  const given = asGiven(values);
  const replay = address('/act/replay', { ...asQuery(filter), back: address('/events', given) });
  return {
    title: 'Events',
    section: 'Events',
    live: after === undefined,
    head: html`<div class="head"><div><h1>Events</h1><p class="muted">${values.company.hint === undefined ? 'Every event that the service sent.' : `Events of ${values.company.hint}.`}</p></div>
${filtered && isUsable && mayAct(asking) && html`<span class="actions">${actButton(replay, 'Replay')}</span>`}</div>
${filters(
  '/events',
  [
    choice(
      'outcome',
      'Outcome',
      'Any',
      eventOutcomes.map((value) => ({ value, words: value })),
      values.outcome,
    ),
    choice(
      'type',
      'Type',
      'All types',
      eventTypes.map((value) => ({ value, words: value })),
      values.type,
    ),
    choice(
      'code',
      'Failure',
      'Any or none',
      Object.keys(failureTypes).map((value) => ({ value, words: value })),
      values.code,
    ),
    textField('record', 'Record', values.record),
    textField('company', 'Company', values.company),
    textField('since', 'Since (UTC)', values.since),
    textField('until', 'Until (UTC)', values.until),
  ],
  values,
)}`,
    body: html`${
      !isUsable
        ? unusable('/events', 'show all events')
        : events.length > 0
          ? await eventTable(deps.db, events, now)
          : next !== null
            ? nothing('No event matches so far', 'The next page searches earlier events.')
            : nothing(
                filtered ? 'No event matches' : 'No event yet',
                filtered
                  ? html`The filter hides the others: <a href="/events">show all events</a>.`
                  : 'Events appear here when the service sends them.',
              )
    }${pager(next === null ? undefined : address('/events', { ...given, before: placeText(next) }), after && address('/events', given))}`,
  };
};

/** A table of events with what people know of their records. */
export async function eventTable(
  db: Executor,
  events: readonly JournalledEvent[],
  now: number,
): Promise<Markup> {
  const known = await subjectsOf(db, events);
  return table(
    'Events',
    [
      {
        name: 'Event',
        of: ({ id, type, subject }) =>
          html`${rowLink(`/events/${encodeURIComponent(id)}`, text(subject.what ?? type))}<small class="id">${subject.what === null ? text(id) : text(type)}</small>`,
      },
      { name: 'Company', of: ({ subject }) => text(subject.company) },
      { name: 'Outcome', of: ({ outcome }) => outcomeBadge(outcome) },
      { name: 'Why', of: ({ error }) => html`<small>${text(error?.slice(0, 120))}</small>` },
      { name: 'Received (UTC)', end: true, of: ({ receivedAt }) => at(receivedAt, now) },
    ],
    known,
    ({ id }) => id,
  );
}

type Named = Pick<JournalledEvent, 'type' | 'recordId' | 'companyId'>;

/** Adds what the record of each event is, in words, and its company. */
async function subjectsOf<E extends Named>(db: Executor, events: readonly E[]) {
  const recordOf = await knownOfRecords(db, events.flatMap(recordKeyOf));
  const rows = events.map((event) => {
    const [record] = recordKeyOf(event).flatMap((key) => recordOf(key) ?? []);
    return { event, record, companyId: event.companyId ?? record?.companyId ?? null };
  });
  const nameOf = await namesOfRecords(db, rows.flatMap(companyOf));
  return rows.map(({ event, record, companyId }) => ({
    ...event,
    subject: {
      what: whatIs(event, record),
      companyId,
      company: companyOf({ companyId }).map(nameOf)[0] ?? companyId,
    },
  }));
}

const resourceOf = { document: 'documents', connection: 'connections', interval: 'meters' } as const;

function recordKeyOf({ type, recordId }: Named): RecordKey[] {
  const kind = kindOfType(type);
  return recordId === null || kind === 'ignored' ? [] : [{ resource: resourceOf[kind], id: recordId }];
}

const words = { document: 'Bill', connection: 'Connection', interval: 'Readings of meter' } as const;

/** `Bill INV-7, City Power`; the id of a record without a name; null for an event without a record. */
function whatIs({ type, recordId }: Named, record: KnownRecord | undefined): string | null {
  const kind = kindOfType(type);
  if (recordId === null || kind === 'ignored') return null;
  const name = record?.name || recordId;
  const of = kind === 'document' && record?.provider ? `, ${record.provider}` : '';
  return `${words[kind]} ${name}${of}`;
}

export const eventPage: MakePage = async (asking) => {
  const { deps, params, query, now } = asking;
  const { id: named = '' } = params;
  // Postgres cannot store NUL characters.
  const event = named.includes('\0') ? undefined : await readEvent(deps.db, named);
  if (event === undefined) return undefined;
  const { id, type, outcome } = event;
  const [{ subject } = { subject: null }] = await subjectsOf(deps.db, [event]);
  const own = `/events/${encodeURIComponent(id)}`;
  return {
    title: type,
    section: 'Events',
    body: html`<p class="crumbs"><a href="/events">Events</a></p>
<div class="head"><h1 class="address"><code>${text(type)}</code></h1><span class="badges">${outcomeBadge(outcome)}
${mayAct(asking) && actButton(address('/act/replay', { id, back: own }), 'Replay')}</span></div>
<div class="card">${facts([
      ['Event', html`<code>${text(id)}</code>`],
      ['Record', event.recordId && recordLink(event, subject?.what ?? null)],
      [
        'Company',
        subject?.companyId && html`<a href="/companies/${subject.companyId}">${text(subject.company)}</a>`,
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
      .map((name) => [capital(label(name)), inFull(event[name], now)] as const),
  )}</div>`,
)}
${section('Workflow', workflow(asking, event))}
${section('Signed body', payload(event, own, query.get('show') === 'payload'))}`,
  };
};

function recordLink({ type, recordId }: EventDetails, what: string | null): Markup {
  const of = kindOfType(type);
  const kind = of === 'interval' ? 'meter' : of;
  const to = address('/trace', { kind, id: recordId ?? '' });
  return html`<a href="${to}">${text(what ?? recordId)}</a> <small class="id">${text(recordId)}</small>`;
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
