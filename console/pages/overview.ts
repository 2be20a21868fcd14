import { html } from 'hono/html';
import { type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { type EventOutcome, eventOutcomes, runKinds } from '../../contract/names.ts';
import { formatSeconds } from '../../contract/times.ts';
import { counted, countInWords } from '../../contract/words.ts';
import { type LastAudits, type LoggedOperation, lastAudits } from '../../db/operations.ts';
import { type HourOfEvents, readArrivals } from '../../db/read/arrivals.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import { whyRefused } from '../../health/event-findings.ts';
import type { AlarmName } from '../../health/findings.ts';
import type { Health, WarehouseHealth } from '../../health/measured.ts';
import { acknowledgeable, acknowledgedInWords, type Finding, headline } from '../../health/verdict.ts';
import { badge, type Markup } from '../../web/parts.ts';
import { type Asking, type MakePage, mayAct } from '../asking.ts';
import { eventCharts } from '../charts.ts';
import { type Section, sections, verdictBadge, verdictTones } from '../frame.ts';
import {
  actButton,
  address,
  ago,
  type Content,
  facts,
  inConsole,
  nothing,
  outcomeTones,
  section,
  stateBadge,
  text,
} from '../parts.ts';

/** Is my copy right and fresh, and who has to act? */
export const overview: MakePage = async (asking) => {
  const { deps, health, verdict, now } = asking;
  const { warehouse, temporal } = health;
  const { findings } = verdict;
  return {
    title: 'Overview',
    section: 'Overview',
    live: true,
    body: html`<h1 class="verdict ${verdictTones[verdict.word]}">${text(headline(verdict))}</h1>
${findings.length > 0 && section('What is wrong', findingCards(asking, findings, '/'))}
${!('away' in warehouse) && freshness(warehouse, await lastAudits(deps.db), now)}
${!('away' in warehouse) && runs(asking, warehouse, temporal)}
${!('away' in warehouse) && deliveries(await readArrivals(deps.db), warehouse, now)}`,
  };
};

function freshness({ pending, silence }: WarehouseHealth, { whole, part }: LastAudits, now: number): Markup {
  return section(
    'Freshness',
    html`<dl class="figures"><div><dt>Last event</dt><dd>${ago(silence.lastEventAt, now)}</dd></div>
${recordEventKinds.map((kind) => {
  const { due, waiting, parked, oldestSeconds } = pending[kind];
  const waits = due + waiting + parked;
  return html`<div><dt>${freshnessOf[kind]}</dt><dd>${oldestSeconds === null ? 'nothing waits' : html`${countInWords(waits)} <small>wait, for ${formatSeconds(oldestSeconds)}</small>`}</dd></div>`;
})}<div><dt>Last audit</dt><dd>${audited(whole, now)}</dd></div></dl>
${part !== undefined && html`<p class="muted small">A later audit compared only a part: ${audited(part, now)}.</p>`}`,
  );
}

/** When service and warehouse were compared, and how they differed. */
function audited(audit: LoggedOperation | undefined, now: number): Content {
  if (audit === undefined) return html`never <small><code>metersync audit</code></small>`;
  const { finishedAt, detail, target } = audit;
  const { command: _, ...scope } = target;
  const of = Object.entries(scope).map(([name, value]) => `${name} ${value}`);
  return html`${ago(finishedAt, now)} <small>${text([detail, ...of].join('; '))}</small>`;
}

const freshnessOf: Readonly<Record<RecordEventKind, string>> = {
  connection: 'Connections',
  document: 'Bills',
  interval: 'Readings',
};

function runs(asking: Asking, { runs: kinds }: WarehouseHealth, temporal: Health['temporal']): Markup {
  const { now } = asking;
  const next = (kind: (typeof runKinds)[number]): Content => {
    if ('away' in temporal) return 'unknown';
    const schedule = temporal.schedules.find(({ name }) => name === kind);
    if (schedule === undefined || schedule.state !== 'active') return schedule?.state ?? 'absent';
    return ago(schedule.next, now);
  };
  return section(
    'Runs',
    html`<div class="pair">${runKinds.map((kind) => {
      const { last, running } = kinds[kind];
      return html`<div class="card"><h3>${kind === 'full' ? 'Full backfill' : 'Reconcile'}</h3>${facts([
        ['Running', running === 0 ? 'no' : String(running)],
        [
          'Last',
          last === null
            ? 'never'
            : html`<a href="/runs/${last.runId}">${ago(last.finishedAt, now)}</a> ${stateBadge(last.state)}`,
        ],
        ['Next', next(kind)],
      ])}${mayAct(asking) && kind === 'full' && actButton('/act/backfill?back=/runs', 'Backfill')}</div>`;
    })}</div>`,
  );
}

function deliveries(hours: readonly HourOfEvents[], health: WarehouseHealth, now: number): Markup {
  const all = (outcome: EventOutcome) =>
    hours.reduce((sum, { outcomes }) => sum + (outcomes[outcome] ?? 0), 0);
  const events = eventOutcomes.reduce((sum, outcome) => sum + all(outcome), 0);
  const body = html`${refusedIn24h(health, now)}${
    events === 0
      ? nothing(
          'No event in 24 hours',
          health.silence.lastEventAt === null
            ? 'No event was ever received.'
            : html`The last event was received ${ago(health.silence.lastEventAt, now)}.`,
        )
      : html`<div class="card"><p class="badges">${eventOutcomes
          .filter((outcome) => all(outcome) > 0)
          .map(
            (outcome) =>
              html`<a href="/events?outcome=${outcome}">${badge(outcomeTones[outcome], `${outcome} ${all(outcome).toLocaleString('en')}`)}</a>`,
          )}</p>${events >= consoleBounds.arrivalsMax && html`<p class="muted small">The newest ${counted(events, 'event')}.</p>`}</div>${eventCharts(hours)}`
  }`;
  return section('Deliveries of 24 hours', body, html`<a href="/events">All events</a>`);
}

/** Refused deliveries do not become events, so only receivers count them. */
function refusedIn24h({ refused }: WarehouseHealth, now: number): Markup | '' {
  if (refused === null || refused.untilSecondsAgo > 86_400) return '';
  const count = Object.values(refused.reasons).reduce((sum, one) => sum + one, 0);
  return html`<p>${badge('bad', `refused ${count.toLocaleString('en')}`)} ${whyRefused(refused)}; the first ${ago(refused.since, now)}, the last ${ago(refused.until, now)}.</p>`;
}

/** Findings, each with what to do, since when its alarm is open, and who was notified or acknowledged it. */
const findingCards = (asking: Asking, findings: readonly Finding[], back: string): Markup =>
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
