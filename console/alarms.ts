import { html } from 'hono/html';
import { type AlertType, alertTypes, isAlertName } from '../contract/alerts.ts';
import type { Alarm, Alarms } from '../operations/alarms.ts';
import { badge } from '../web/badge.ts';
import type { Markup } from '../web/markup.ts';
import { ago, facts, section, text } from './parts.ts';

/** Alarms that are open, each with what to do. */
export function openAlarms({ alerts }: Alarms, now: number): Markup | '' {
  const open = alerts.filter(({ openedAt }) => openedAt !== null);
  if (open.length === 0) return '';
  return section('Open alarms', html`<ul class="cards">${open.map((alarm) => alarmCard(alarm, now))}</ul>`);
}

function alarmCard({ name, key, detail, severity, openedAt, notifiedAt, error }: Alarm, now: number): Markup {
  const type: AlertType | undefined = isAlertName(name) ? alertTypes[name] : undefined;
  return html`<li class="card"><div class="row"><strong>${text(`${name} ${key}`.trim())}</strong>${badge(severity === 'page' ? 'bad' : 'uneasy', severity ?? 'of another version')}</div>
<p>${type?.means} ${text(detail)}</p>
${facts([
  ['Since', ago(openedAt, now)],
  ['Sent', notifiedAt === null ? 'no' : ago(notifiedAt, now)],
  ['NOTIFY_URL', error && text(error)],
])}
${type && html`<p><b>What to do:</b> ${withCode(type.act.join(' '))}</p>`}</li>`;
}

/** Runbooks have commands between backticks. */
const withCode = (words: string): Markup[] =>
  words.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
