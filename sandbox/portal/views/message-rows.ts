import { html } from 'hono/html';
import { badge } from '../../../web/badge.ts';
import type { Markup } from '../../../web/markup.ts';
import type { Micros } from '../../timestamps.ts';
import { icons } from '../icons.ts';
import { type MessageStatus, statusBadge } from './status.ts';
import { timeAgo } from './time.ts';

export interface MessageRow {
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
