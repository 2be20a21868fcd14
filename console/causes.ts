import { html } from 'hono/html';
import { type FailureCode, failureTypes } from '../contract/failures.ts';
import { counted, eventsGivenUp } from '../contract/words.ts';
import { type GivenUpGroup, readGivenUp } from '../db/read/given-up.ts';
import type { AlarmName } from '../health/findings.ts';
import type { ParkedWork, WaitingEvents, WarehouseHealth } from '../health/measured.ts';
import type { Finding } from '../health/verdict.ts';
import type { Markup } from '../web/markup.ts';
import { type Asking, mayAct } from './asking.ts';
import { knowing } from './finding-cards.ts';
import { actButton, ago, facts, prose, text } from './parts.ts';

/** Events and parts of backfills that need attention or wait, grouped by cause. */
export async function causeCards(asking: Asking, warehouse: WarehouseHealth): Promise<Markup[]> {
  const { db } = asking.deps;
  const [dead, missing] = await Promise.all([readGivenUp(db, 'dead'), readGivenUp(db, 'missing')]);
  const parkedCodes = new Set<string>(warehouse.parked.map(({ code }) => code));
  return [
    ...warehouse.parked.map((work) => parkedCard(asking, work)),
    ...warehouse.waiting
      .filter(({ code }) => !parkedCodes.has(code))
      .map((cause) => waitingCard(asking, cause)),
    ...dead.map((one) => givenUp(asking, 'dead', one)),
    ...missing.map((one) => givenUp(asking, 'missing', one)),
  ];
}

/** Findings that these cards say more about. */
export const withCauses: readonly AlarmName[] = [
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
    act: actButton(`/act/resume?code=${work.code}&back=/`, 'Try again now'),
    finding: findingOf(asking, 'Parked', `code=${work.code}`),
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
  /** The finding to which it belongs, unless somebody acknowledged the finding: then it has a card. */
  readonly finding?: Finding | undefined;
  readonly list: string;
}

const findingOf = ({ verdict }: Asking, name: AlarmName, of = ''): Finding | undefined =>
  verdict.findings.find(
    ({ alarm, key, acknowledged }) => alarm === name && key === of && acknowledged === null,
  );

function card(asking: Asking, cause: Cause): Markup {
  const { code, kind, what, owners = 0, since, next, reason, example, act, finding, list } = cause;
  const { now } = asking;
  const type = code !== null && code in failureTypes ? failureTypes[code as FailureCode] : undefined;
  return html`<li class="card"><div class="row"><strong>${kind}: ${code ?? 'without a code'}</strong><span class="badges"><a class="button outline small" href="${list}">Events</a>${mayAct(asking) && act}${mayAct(asking) && finding && knowing(finding, '/')}</span></div>
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
${type && html`<p><b>What to do:</b> ${prose(type.operator)}</p>`}</li>`;
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
    act: actButton(`/act/replay?${query}&back=/`, 'Replay'),
    finding: findingOf(asking, outcome === 'dead' ? 'EventsDead' : 'EventsMissing'),
    list: `/events?${query}`,
  });
}
