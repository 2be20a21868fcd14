import { html } from 'hono/html';
import type { AlarmName } from '../health/findings.ts';
import { acknowledgeable, acknowledgedInWords, type Finding } from '../health/verdict.ts';
import { badge } from '../web/badge.ts';
import type { Markup } from '../web/markup.ts';
import { type Asking, mayAct } from './asking.ts';
import { verdictBadge } from './frame.ts';
import { actButton, address, ago, text } from './parts.ts';

/** Findings, each with what to do, since when its alarm is open, and who was notified or acknowledged it. */
export const findingCards = (asking: Asking, findings: readonly Finding[], back: string): Markup =>
  html`<ul class="cards">${findings.map((finding) => {
    const { name, word, saw, todo, open, acknowledged } = finding;
    return html`<li class="card"><div class="row"><strong>${text(name)}</strong><span class="badges">${workOf(asking, finding, back)}${mayAct(asking) && acknowledgeButton(finding, back)}${acknowledged !== null ? badge('plain', 'acknowledged') : word === 'In sync' ? badge('plain', 'note') : verdictBadge(word)}</span></div>
<p>${text(saw)}</p>${open !== null && html`<p class="muted small">Open since ${ago(open.since, asking.now)}; ${open.notifiedAt === null ? 'nobody was notified' : html`notified ${ago(open.notifiedAt, asking.now)}`}.</p>`}
${acknowledged !== null && html`<p class="muted small">${text(acknowledgedInWords(acknowledged))}.</p>`}
<p><b>What to do:</b> ${text(todo)}</p></li>`;
  })}</ul>`;

/** The button that acknowledges a finding or withdraws the acknowledgement. */
function acknowledgeButton({ alarm, key, word, acknowledged }: Finding, back: string): Markup | '' {
  const to = (action: string) => address(`/act/alerts-${action}`, { id: alarm ?? '', key, back });
  if (acknowledged !== null) return actButton(to('unacknowledge'), 'Withdraw acknowledgement');
  return alarm !== null && word === acknowledgeable ? actButton(to('acknowledge'), 'Acknowledge') : '';
}

/** The events that findings are about, as the filter of a list and of an action. */
const eventsOf: Partial<Record<AlarmName, Readonly<Record<string, string>>>> = {
  KeyRefused: { outcome: 'pending', code: 'SERVICE_KEY_REFUSED' },
  ServiceDown: { outcome: 'pending', code: 'SERVICE_OUTAGE' },
  Parked: { outcome: 'pending' },
  EventsDead: { outcome: 'dead' },
  EventsMissing: { outcome: 'missing' },
};

/** Links to the events of a finding, with a button that tries parked work again or replays events. */
function workOf(asking: Asking, { alarm, key }: Finding, back: string): Markup | '' {
  const events = alarm === null ? undefined : eventsOf[alarm];
  if (events === undefined) return '';
  const code = /^code=(.+)$/.exec(key)?.[1] ?? events.code;
  const values = { ...events, code };
  const again =
    alarm === 'ServiceDown'
      ? ''
      : events.outcome === 'pending'
        ? actButton(address('/act/resume', { code, back }), 'Try again now')
        : actButton(address('/act/replay', { ...values, back }), 'Replay');
  return html`<a class="button outline small" href="${address('/events', values)}">Events</a>${mayAct(asking) && again}`;
}
