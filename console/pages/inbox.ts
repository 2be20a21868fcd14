import { html } from 'hono/html';
import { type FailureCode, failureTypes } from '../../contract/failures.ts';
import { counted, eventsGivenUp } from '../../contract/words.ts';
import { mostCounted } from '../../db/read/counted.ts';
import { type GivenUpGroup, readGivenUp } from '../../db/read/given-up.ts';
import { readWaiting, type WaitingEvents } from '../../db/read/waiting.ts';
import type { AlarmName } from '../../health/findings.ts';
import type { ParkedWork } from '../../health/measured.ts';
import type { Markup } from '../../web/markup.ts';
import { type Asking, type MakePage, mayAct } from '../asking.ts';
import { findingCards } from '../finding-cards.ts';
import { actButton, ago, facts, nothing, section, text } from '../parts.ts';

/** What is broken, grouped by cause? */
export const inbox: MakePage = async (asking) => {
  const { deps, health, verdict, now } = asking;
  const { db } = deps;
  const { warehouse } = health;
  if ('away' in warehouse)
    return {
      title: 'Inbox',
      section: 'Inbox',
      live: true,
      body: html`<h1>Inbox</h1>${nothing('The inbox cannot be shown now', html`${text(warehouse.away)}. ${text(warehouse.todo)}`)}`,
    };
  const [waiting, dead, missing] = await Promise.all([
    readWaiting(db, mostCounted),
    readGivenUp(db, 'dead'),
    readGivenUp(db, 'missing'),
  ]);
  const parkedCodes = new Set<string>(warehouse.parked.map(({ code }) => code));
  const cards = [
    ...warehouse.parked.map((work) => parkedCard(asking, work)),
    ...waiting.filter(({ code }) => !parkedCodes.has(code)).map((cause) => waitingCard(asking, cause)),
    ...dead.map((one) => givenUp(asking, 'dead', one)),
    ...missing.map((one) => givenUp(asking, 'missing', one)),
  ];
  const others = verdict.findings.filter(({ alarm }) => alarm === null || !withCards.includes(alarm));
  const empty = cards.length + others.length === 0;
  return {
    title: 'Inbox',
    section: 'Inbox',
    live: true,
    body: html`<div class="head"><div><h1>Inbox</h1><p class="muted">What is broken, by its cause, and what to do about it.</p></div></div>
${empty && nothing('Nothing needs you', html`Last looked ${ago(new Date(now).toISOString(), now)}.`)}
${cards.length > 0 && section('Events and backfills', html`<ul class="cards">${cards}</ul>`)}
${others.length > 0 && section('Everything else', findingCards(others, now), html`<a href="/deletes">Deletes</a> <a href="/runs">Runs</a>`)}`,
  };
};

/** Findings that have cards by cause. */
const withCards: readonly AlarmName[] = [
  'KeyRefused',
  'ServiceDown',
  'Parked',
  'EventsDead',
  'EventsMissing',
];

const parkedCard = (asking: Asking, work: ParkedWork): Markup =>
  card(asking, {
    code: work.code,
    kind: 'Parked',
    what: [
      ...(work.events > 0 ? [counted(work.events, 'event')] : []),
      ...(work.parts > 0 ? [`${counted(work.parts, 'part')} of backfills`] : []),
    ].join(' and '),
    owners: work.owners,
    since: work.since,
    next: work.nextAttemptAt,
    reason: work.reason,
    act: actButton(`/act/resume?code=${work.code}&back=/inbox`, 'Try again now'),
    list: `/events?outcome=pending&code=${work.code}`,
  });

const waitingCard = (asking: Asking, cause: WaitingEvents): Markup =>
  card(asking, {
    code: cause.code,
    kind: 'Waiting',
    what: counted(cause.events, 'event'),
    owners: cause.owners,
    next: cause.nextAttemptAt,
    reason: cause.reason,
    list: `/events?outcome=pending&code=${cause.code}`,
  });

interface Cause {
  readonly code: string | null;
  readonly kind: string;
  readonly what: string;
  readonly owners?: number;
  readonly since?: string;
  readonly next?: string | null;
  readonly reason: string | null;
  readonly example?: string;
  readonly act?: Markup;
  readonly list: string;
}

function card(asking: Asking, cause: Cause): Markup {
  const { code, kind, what, owners = 0, since, next, reason, example, act, list } = cause;
  const { now } = asking;
  const type = code !== null && code in failureTypes ? failureTypes[code as FailureCode] : undefined;
  return html`<li class="card"><div class="row"><strong>${kind}: ${code ?? 'without a code'}</strong><span class="badges"><a class="button outline small" href="${list}">Events</a>${act && mayAct(asking) && act}</span></div>
<p>${what}${owners > 0 && ` of ${counted(owners, 'company or meter', 'companies or meters')}`}${type && `. ${type.means}`}</p>
${facts([
  ['Since', since && ago(since, now)],
  ['Next attempt', next && ago(next, now)],
  ['For example', reason && text(reason)],
  [
    'Event',
    example && html`<a href="/events/${encodeURIComponent(example)}"><code>${text(example)}</code></a>`,
  ],
])}
${type && html`<p><b>What to do:</b> ${type.operator}</p>`}</li>`;
}

function givenUp(asking: Asking, outcome: 'dead' | 'missing', group: GivenUpGroup): Markup {
  const { code, events, companies, since, example, error } = group;
  const query = `outcome=${outcome}${code === null ? '' : `&code=${code}`}`;
  return card(asking, {
    code,
    kind: outcome === 'dead' ? 'Dead' : 'Missing',
    what: `${eventsGivenUp(events)}${companies > 0 ? ` of ${counted(companies, 'company', 'companies')}` : ''}`,
    since,
    reason: error,
    example,
    act: html`${outcome === 'dead' && actButton(`/act/events-ignore?${query}&back=/inbox`, 'Ignore')}${actButton(`/act/replay?${query}&back=/inbox`, 'Replay')}`,
    list: `/events?${query}`,
  });
}
