import { html } from 'hono/html';
import type { Markup } from '../../../web/markup.ts';
import type { Micros } from '../../timestamps.ts';
import { exactTime, readableTime, relativeTime } from '../relative-time.ts';

/** "3 minutes ago", with all digits of the timestamp on hover. */
export const timeAgo = (at: string, now: Micros): Markup =>
  html`<time datetime="${at}Z" title="${exactTime(at)}">${relativeTime(at, now)}</time>`;

/** The time to the second and how long ago it was, for pages where it must be readable without a mouse. */
export const timeInFull = (at: string, now: Micros): Markup =>
  html`<time datetime="${at}Z" title="${exactTime(at)}">${readableTime(at)}</time> <span class="muted">(${relativeTime(at, now)})</span>`;
