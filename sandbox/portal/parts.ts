import { html, raw } from 'hono/html';
import { field } from '../../web/form.ts';
import * as web from '../../web/parts.ts';
import { badge, drawing, type Markup, icons as shared } from '../../web/parts.ts';
import { fromText, type Micros, secondsToMicros, toText } from '../time.ts';

export const icons = {
  ...shared,
  plus: drawing(html`<path d="M12 5v14M5 12h14"/>`),
  more: drawing(
    html`<circle cx="5" cy="12" r="1"/><circle cx="12" cy="12" r="1"/><circle cx="19" cy="12" r="1"/>`,
  ),
  endpoint: drawing(
    html`<path d="M9 15l6-6"/><path d="M11 6l1-1a5 5 0 0 1 7 7l-1 1"/><path d="M13 18l-1 1a5 5 0 0 1-7-7l1-1"/>`,
  ),
  message: drawing(html`<path d="M4 6h16v12H4z"/><path d="M4 7l8 6 8-6"/>`),
  inbox: drawing(html`<path d="M4 13l3-8h10l3 8v6H4z"/><path d="M4 13h5l1 3h4l1-3h5"/>`),
  back: drawing(html`<path d="M15 6l-6 6 6 6"/>`),
  replay: drawing(html`<path d="M4 12a8 8 0 1 0 3-6"/><path d="M4 4v5h5"/>`),
} as const;

/** Says in words how long before or after `now` a timestamp is: "3 minutes ago", "in 5 hours", "just now". */
export const relativeTime = (at: string, now: Micros): string =>
  web.relativeTime(Number(fromText(at) - now) / 1_000_000);

/** A timestamp to the second: "21 Nov 2026, 09:47:41 UTC". */
export const readableTime = (at: string): string => web.readableTime(new Date(`${at.slice(0, 23)}Z`));

/** A timestamp with all of its digits: "2026-11-21 09:47:41.123456 UTC". */
export const exactTime = (at: string): string => `${at.replace('T', ' ')} UTC`;

/** "3 minutes ago", with all digits of the timestamp on hover. */
export const timeAgo = (at: string, now: Micros): Markup =>
  html`<time datetime="${at}Z" title="${exactTime(at)}">${relativeTime(at, now)}</time>`;

/** The time to the second and how long ago it was, for pages where it must be readable without a mouse. */
export const timeInFull = (at: string, now: Micros): Markup =>
  html`<time datetime="${at}Z" title="${exactTime(at)}">${readableTime(at)}</time> <span class="muted">(${relativeTime(at, now)})</span>`;

/** The states of a message, for one endpoint or overall (docs/reference/sandbox.md), with their names. */
export const messageStatuses = {
  delivered: { name: 'Delivered', tone: 'good' },
  pending: { name: 'Pending', tone: 'busy' },
  retrying: { name: 'Retrying', tone: 'uneasy' },
  failed: { name: 'Failed', tone: 'bad' },
  missing: { name: 'Not sent', tone: 'plain' },
} as const;
export type MessageStatus = keyof typeof messageStatuses;

export function statusBadge(status: MessageStatus): Markup {
  const { tone, name } = messageStatuses[status];
  return badge(tone, name);
}

/** Shows an endpoint's state (service.md 3.2), and of an active one whether its last attempts failed. */
export function endpointBadge(state: string, failingSince: string | null): Markup {
  if (state === 'removed') return badge('plain', 'Removed');
  if (state === 'disabled') return badge('bad', 'Disabled');
  return failingSince === null ? badge('good', 'Active') : badge('uneasy', 'Failing');
}

interface MessageRow {
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly example: boolean;
  readonly status: MessageStatus;
  /** The number of attempts, or of endpoints. */
  readonly note: string;
}

/** Messages as a table. Each row links to the page of its message. */
export const messageRows = (
  base: string,
  rows: readonly MessageRow[],
  now: Micros,
  caption: string,
  noteName: 'Sent to' | 'Attempts',
): Markup => html`<div class="card flush"><table class="rows">
<caption class="unseen">${caption}</caption>
<thead><tr><th scope="col">Message</th><th scope="col" class="wide-only">${noteName}</th><th scope="col">Status</th><th scope="col" class="end wide-only">Written</th></tr></thead>
<tbody>${rows.map(
  (
    row,
  ) => html`<tr id="${row.id}"><td><a class="stretched" href="${base}/messages/${row.id}"><code>${row.type}</code></a>
${row.example && badge('plain', 'Example')}<small class="id">${row.id}</small></td>
<td class="wide-only">${row.note}</td><td>${statusBadge(row.status)}<small class="narrow-only">${timeAgo(row.created, now)}</small></td>
<td class="end wide-only">${timeAgo(row.created, now)}</td></tr>`,
)}</tbody></table></div>`;

export const nothingHere = (title: string, words: Markup | string): Markup => html`<div class="empty slim">
<p class="big-icon">${icons.message}</p><h3>${title}</h3><p>${words}</p></div>`;

/** The choice of a time, as forms send it and show it again. */
export interface WindowChoice {
  readonly choice: WindowName;
  /** What was typed for `custom`: `YYYY-MM-DDTHH:MM[:SS]`, UTC. */
  readonly from: string;
  readonly until: string;
}

/** Seconds back from now; null for no limit. */
const windows = {
  any: { name: 'Any time', seconds: null },
  '1h': { name: 'Last hour', seconds: 3_600 },
  '24h': { name: 'Last 24 hours', seconds: 86_400 },
  '7d': { name: 'Last 7 days', seconds: 604_800 },
  custom: { name: 'Custom…', seconds: null },
} as const;
type WindowName = keyof typeof windows;

export function readWindow(form: URLSearchParams, otherwise: WindowName): WindowChoice {
  const asked = field(form, 'when');
  const choice = Object.hasOwn(windows, asked) ? (asked as WindowName) : otherwise;
  return { choice, from: field(form, 'from'), until: field(form, 'until') };
}

interface TimeWindow {
  /** Inclusive; null for no limit. */
  readonly from: string | null;
  /** Exclusive; null for no limit. */
  readonly until: string | null;
}

/** Returns the window that a choice means at `now`, or what is wrong with the times that were typed. */
export function windowOf({ choice, from, until }: WindowChoice, now: Micros): TimeWindow | { wrong: string } {
  if (choice === 'custom') return customWindow(from, until);
  const { seconds } = windows[choice];
  return { from: seconds === null ? null : toText(now - secondsToMicros(seconds)), until: null };
}

function customWindow(from: string, until: string): TimeWindow | { wrong: string } {
  const first = momentOf(from);
  const last = momentOf(until);
  if (first === undefined || last === undefined) {
    return { wrong: 'Write times as date and time, for example 2026-07-01T14:30.' };
  }
  if (first === null && last === null) return { wrong: 'Choose when the time begins or ends.' };
  if (first !== null && last !== null && first >= last)
    return { wrong: 'The time must end after it begins.' };
  return { from: first === null ? null : toText(first), until: last === null ? null : toText(last) };
}

/** Null if nothing was typed, undefined for a text that is not a time. */
function momentOf(text: string): Micros | null | undefined {
  if (text === '') return null;
  const full = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/.test(text) ? `${text}:00` : text;
  try {
    const at = fromText(full);
    return at >= 0n ? at : undefined;
  } catch {
    return undefined;
  }
}

/** Fields that choose a time: a usual choice, or a beginning and an end. `name` keeps ids distinct. */
export const windowFields = (
  name: string,
  chosen: WindowChoice,
  offered: readonly WindowName[],
  wrong?: string,
): Markup => html`<div class="when"><div><label for="${name}-when">Time</label>
<select id="${name}-when" name="when" ${wrong === undefined ? '' : raw(`aria-invalid="true" aria-describedby="${name}-wrong"`)}>${offered.map(
  (one) =>
    html`<option value="${one}" ${one === chosen.choice ? raw('selected') : ''}>${windows[one].name}</option>`,
)}</select></div>
<div class="custom"><label for="${name}-from">From (UTC)</label>
<input id="${name}-from" name="from" type="datetime-local" step="1" value="${chosen.from}"></div>
<div class="custom"><label for="${name}-until">Until (UTC)</label>
<input id="${name}-until" name="until" type="datetime-local" step="1" value="${chosen.until}"></div></div>
${wrong !== undefined && html`<p class="field-error" id="${name}-wrong">${icons.warning}${wrong}</p>`}`;
