import { html } from 'hono/html';
import type { AlarmName } from '../health/findings.ts';
import { acknowledgeable, acknowledgedInWords, type Finding } from '../health/verdict.ts';
import { badge } from '../web/badge.ts';
import type { Markup } from '../web/markup.ts';
import { type Asking, mayAct } from './asking.ts';
import { type Section, sections, verdictBadge } from './frame.ts';
import { inConsole } from './in-console.ts';
import { actButton, address, ago, text } from './parts.ts';

/** Findings, each with what to do, since when its alarm is open, and who was notified or acknowledged it. */
export const findingCards = (asking: Asking, findings: readonly Finding[], back: string): Markup =>
  html`<ul class="cards">${findings.map((finding) => {
    const { name, word, saw, todo, open, acknowledged } = finding;
    return html`<li class="card"><div class="row"><strong>${text(name)}</strong><span class="badges">${pagesOf(finding)}${workOf(asking, finding, back)}${mayAct(asking) && acknowledgeButton(finding, back)}${acknowledged !== null ? badge('plain', 'acknowledged') : word === 'In sync' ? badge('plain', 'note') : verdictBadge(word)}</span></div>
<p>${text(inConsole(saw))}</p>${open !== null && html`<p class="muted small">Open since ${ago(open.since, asking.now)}; ${open.notifiedAt === null ? 'nobody was notified' : html`notified ${ago(open.notifiedAt, asking.now)}`}.</p>`}
${acknowledged !== null && html`<p class="muted small">${text(acknowledgedInWords(acknowledged))}.</p>`}
<p><b>What to do:</b> ${text(inConsole(todo))}</p></li>`;
  })}</ul>`;

/** The button that acknowledges a finding or withdraws the acknowledgement. */
function acknowledgeButton({ alarm, key, word, acknowledged }: Finding, back: string): Markup | '' {
  const to = (action: string) => address(`/act/alerts-${action}`, { id: alarm ?? '', key, back });
  if (acknowledged !== null) return actButton(to('unacknowledge'), 'Withdraw acknowledgement');
  return alarm !== null && word === acknowledgeable ? actButton(to('acknowledge'), 'Acknowledge') : '';
}

/** The pages that show what findings are about. */
const pages: Partial<Record<AlarmName, Section>> = {
  ChangesMissed: 'Runs',
  Decide: 'Deletes',
  SchedulePaused: 'System',
  ScheduleGone: 'System',
};

/** Links to the page that a finding is about, and to the run that it names. */
function pagesOf({ alarm, saw }: Finding): Markup[] {
  const page = alarm === null ? undefined : pages[alarm];
  const run = /\brun ([0-9a-f-]{36})\b/.exec(saw)?.[1];
  return [
    ...(page === undefined ? [] : [pageButton(sections[page], page)]),
    ...(run === undefined ? [] : [pageButton(`/runs/${run}`, 'Run')]),
  ];
}

const pageButton = (to: string, words: string): Markup =>
  html`<a class="button outline small" href="${to}">${words}</a>`;

/** Findings of full backfills that another backfill may end. */
const ofBackfills: readonly (AlarmName | null)[] = ['NotLoaded', 'RunUnwell', 'RunOverdue'];

/** The events that findings are about, as the filter of a list and of an action. */
const eventsOf: Partial<Record<AlarmName, Readonly<Record<string, string>>>> = {
  KeyRefused: { outcome: 'pending', code: 'SERVICE_KEY_REFUSED' },
  ServiceDown: { outcome: 'pending', code: 'SERVICE_OUTAGE' },
  Parked: { outcome: 'pending' },
  EventsDead: { outcome: 'dead' },
  EventsMissing: { outcome: 'missing' },
};

/** Links to the events of a finding, and the button that does the work again. */
function workOf(asking: Asking, { alarm, key }: Finding, back: string): Markup | '' {
  if (ofBackfills.includes(alarm) && !key.includes('kind=reconcile'))
    return mayAct(asking) ? actButton(address('/act/backfill', { back }), 'Backfill') : '';
  const events = alarm === null ? undefined : eventsOf[alarm];
  if (events === undefined) return '';
  const code = /^code=(.+)$/.exec(key)?.[1] ?? events.code;
  const values = { ...events, code };
  const again =
    alarm === 'ServiceDown'
      ? ''
      : events.outcome === 'pending'
        ? actButton(address('/act/resume', { code, back }), 'Try again')
        : actButton(address('/act/replay', { ...values, back }), 'Replay');
  return html`${pageButton(address('/events', values), 'Events')}${mayAct(asking) && again}`;
}
