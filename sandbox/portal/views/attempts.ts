import { STATUS_CODES } from 'node:http';
import { html } from 'hono/html';
import { badge } from '../../../web/badge.ts';
import type { Markup } from '../../../web/markup.ts';
import { visibleText } from '../../../web/visible-text.ts';
import type { Micros } from '../../timestamps.ts';
import { icons } from '../icons.ts';
import { payloadText } from '../payload.ts';
import type { Attempt, Standing } from '../read/message.ts';
import { timeInFull } from './time.ts';

const origins: Readonly<Record<NonNullable<Attempt['replay']>, string>> = {
  message: 'Resent',
  failed: 'Replayed',
  missing: 'Recovered',
};

/** The attempts of a message at one endpoint, the newest first, each with its answer and a menu of options. */
export const attemptList = (
  address: string,
  standing: Standing,
  attempts: readonly Attempt[],
  now: Micros,
): Markup =>
  html`<ol class="attempts">${attempts.map((one) => attemptItem(address, standing, one, now))}</ol>`;

function attemptItem(address: string, standing: Standing, attempt: Attempt, now: Micros): Markup {
  const { deliveryId, number, at, status, durationMs, replay, duplicate } = attempt;
  const key = `${deliveryId}-${number}${duplicate ? '-copy' : ''}`;
  const good = status !== null && status >= 200 && status < 300;
  return html`<li id="attempt-${key}"><details class="attempt" id="answer-${key}"><summary>
<span class="badges">${badge(good ? 'good' : 'bad', answerOf(attempt))}<strong>Attempt ${number}</strong>
${replay !== null && html`<span>${origins[replay]}</span>`}${duplicate && html`<span>Second copy</span>`}</span>
<small>${timeInFull(at, now)} · ${durationMs.toLocaleString('en')} ms</small></summary>
<div class="attempt-body">${attempt.error !== null && html`<p class="bad-text">${visibleText(attempt.error)}</p>`}
${attempt.responseBody !== null && responseOf(attempt.responseBody)}
${headers('Answer headers', attempt.responseHeaders)}${headers('Sent headers', attempt.requestHeaders)}</div></details>
${options(address, standing, number, key)}</li>`;
}

const answerOf = ({ status }: Attempt): string =>
  status === null ? 'No answer' : `${status} ${STATUS_CODES[status] ?? ''}`.trim();

const responseOf = (body: string): Markup =>
  body === ''
    ? html`<p class="muted">The answer had no body.</p>`
    : html`<h4>Answer</h4>${payloadText(body, 'Answer body')}`;

/** service.md 6.5: a message is resent from the options menu of an attempt. */
const options = (
  address: string,
  { endpointId, endpointState }: Standing,
  number: number,
  key: string,
): Markup | '' =>
  endpointState !== 'active'
    ? ''
    : html`<details class="menu" id="menu-${key}"><summary aria-label="Options of attempt ${number}" title="Options">${icons.more}</summary>
<div class="menu-items"><form method="post" action="${address}/resend"><input type="hidden" name="endpoint" value="${endpointId}"><button>Resend message</button></form>
<form method="post" action="${address}/replay-since"><input type="hidden" name="endpoint" value="${endpointId}"><button>Replay all failures since this message</button></form></div></details>`;

/** Shows stored headers: a JSON object of names with one or several values. */
export function headers(title: string, kept: string | null): Markup | '' {
  if (kept === null) return '';
  const pairs = Object.entries(JSON.parse(kept) as Record<string, string | string[]>);
  if (pairs.length === 0) return '';
  return html`<details class="folded"><summary>${title}</summary><dl class="headers">${pairs.map(
    ([name, value]) =>
      html`<div><dt>${visibleText(name)}</dt><dd><bdi>${visibleText([value].flat().join(', '))}</bdi></dd></div>`,
  )}</dl></details>`;
}
