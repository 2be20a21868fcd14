import { html } from 'hono/html';
import { icons } from './icons.ts';
import type { Markup } from './markup.ts';
import { visibleText } from './visible-text.ts';

/** A value in fixed-width type with a button that copies it. `what` names it, for example "message id". */
export const copyable = (value: string, what: string): Markup =>
  html`<span class="copyable"><code><bdi>${visibleText(value)}</bdi></code><button type="button" class="quiet copy"
    data-copy="${value}" aria-label="Copy ${what}" title="Copy ${what}">${icons.copy}</button></span>`;
