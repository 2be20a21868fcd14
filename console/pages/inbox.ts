import { html } from 'hono/html';
import { type FailureCode, failureTypes } from '../../contract/failures.ts';
import { counted, eventsGivenUp } from '../../contract/words.ts';
import { readDeletes } from '../../db/deletes/decide.ts';
import { mostCounted } from '../../db/read/counted.ts';
import { listDataIssues } from '../../db/read/issues.ts';
import { readWaiting } from '../../db/read/status.ts';
import { type GivenUpGroup, readGivenUp } from '../../db/read/unhappy.ts';
import type { Markup } from '../../web/markup.ts';
import { type Asking, type MakePage, mayAct } from '../asking.ts';
import { actButton, ago, facts, nothing, section, severityBadge, stateBadge, text } from '../parts.ts';

/** What is broken, grouped by cause? */
export const inbox: MakePage = async (asking) => {
  const { deps, health, now } = asking;
  const { db } = deps;
  const { warehouse } = health;
  if ('away' in warehouse)
    return {
      title: 'Inbox',
      section: 'Inbox',
      live: true,
      body: html`<h1>Inbox</h1>${nothing('The inbox cannot be shown now', html`${text(warehouse.away)}. ${text(warehouse.todo)}`)}`,
    };
  const [waiting, dead, missing, deletes, issues] = await Promise.all([
    readWaiting(db, mostCounted),
    readGivenUp(db, 'dead'),
    readGivenUp(db, 'missing'),
    readDeletes(db, { all: false }),
    listDataIssues(db, { severity: 'error', unacknowledged: true }, 5),
  ]);
  const { parked } = warehouse;
  const parkedCodes = new Set<string>(parked.map(({ code }) => code));
  const cards = [
    ...parked.map((one) =>
      card(asking, {
        code: one.code,
        kind: 'Parked',
        what: [
          ...(one.events > 0 ? [counted(one.events, 'event')] : []),
          ...(one.parts > 0 ? [`${counted(one.parts, 'part')} of backfills`] : []),
        ].join(' and '),
        owners: one.owners,
        since: one.since,
        next: one.nextAttemptAt,
        reason: one.reason,
        act: actButton(`/act/resume?code=${one.code}&back=/inbox`, 'Try again now'),
        list: `/events?outcome=pending&code=${one.code}`,
      }),
    ),
    ...waiting
      .filter(({ code }) => !parkedCodes.has(code))
      .map((one) =>
        card(asking, {
          code: one.code,
          kind: 'Waiting',
          what: counted(one.events, 'event'),
          owners: one.owners,
          next: one.nextAttemptAt,
          reason: one.reason,
          list: `/events?outcome=pending&code=${one.code}`,
        }),
      ),
    ...dead.map((one) => givenUp(asking, 'dead', one)),
    ...missing.map((one) => givenUp(asking, 'missing', one)),
  ];
  const unwell = Object.entries(warehouse.runs).filter(
    ([, { last }]) => last !== null && last.state !== 'complete',
  );
  const empty = cards.length + deletes.length + issues.length + unwell.length === 0;
  return {
    title: 'Inbox',
    section: 'Inbox',
    live: true,
    body: html`<div class="head"><div><h1>Inbox</h1><p class="muted">What is broken, by its cause, and what to do about it.</p></div></div>
${empty && nothing('Nothing needs you', html`Last looked ${ago(new Date(now).toISOString(), now)}.`)}
${cards.length > 0 && section('Events and backfills', html`<ul class="cards">${cards}</ul>`)}
${
  deletes.length > 0 &&
  section(
    'Deletes that wait for a decision',
    html`<div class="card"><p>${counted(
      deletes.reduce((sum, { rows }) => sum + rows, 0),
      'row',
    )} gone from the service at once: kept until somebody decides.</p><a class="button small" href="/deletes">Decide</a></div>`,
  )
}
${
  unwell.length > 0 &&
  section(
    'Runs that did not end well',
    html`<ul class="cards">${unwell.map(([kind, { last }]) =>
      last === null
        ? ''
        : html`<li class="card"><div class="row"><a class="stretched" data-row href="/runs/${last.runId}">${kind}, ended ${ago(last.finishedAt, now)}</a>${stateBadge(last.state)}</div><p>${text(last.error)}</p></li>`,
    )}</ul>`,
  )
}
${
  issues.length > 0 &&
  section(
    'Errors of the data',
    html`<ul class="cards">${issues.map(
      ({ id, severity, sentence, company, companyId }) =>
        html`<li class="card"><div class="row"><a class="stretched" data-row href="/issues/${id}">${text(sentence)}</a>${severityBadge(severity)}</div><p class="meta">${text(company ?? companyId)}</p></li>`,
    )}</ul>`,
    html`<a href="/issues?severity=error">All errors</a>`,
  )
}`,
  };
};

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
    act: actButton(`/act/replay?${query}&back=/inbox`, 'Replay'),
    list: `/events?${query}`,
  });
}
