import { html } from 'hono/html';
import type { Markup } from './markup.ts';

/** Draws on a grid of 24 by 24 with lines of 2. An icon stands next to words or in an element that has a name. */
const drawing = (shape: Markup): Markup =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${shape}</svg>`;

export const icons = {
  mark: drawing(html`<path d="M4 13a8 8 0 0 1 16 0"/><path d="M12 13l4-5"/><path d="M4 17h16"/>`),
  copy: drawing(html`<rect x="9" y="9" width="11" height="11" rx="2"/><path d="M5 15V6a2 2 0 0 1 2-2h9"/>`),
  plus: drawing(html`<path d="M12 5v14M5 12h14"/>`),
  more: drawing(
    html`<circle cx="5" cy="12" r="1"/><circle cx="12" cy="12" r="1"/><circle cx="19" cy="12" r="1"/>`,
  ),
  endpoint: drawing(
    html`<path d="M9 15l6-6"/><path d="M11 6l1-1a5 5 0 0 1 7 7l-1 1"/><path d="M13 18l-1 1a5 5 0 0 1-7-7l1-1"/>`,
  ),
  message: drawing(html`<path d="M4 6h16v12H4z"/><path d="M4 7l8 6 8-6"/>`),
  inbox: drawing(html`<path d="M4 13l3-8h10l3 8v6H4z"/><path d="M4 13h5l1 3h4l1-3h5"/>`),
  lock: drawing(html`<rect x="5" y="11" width="14" height="9" rx="2"/><path d="M8 11V8a4 4 0 0 1 8 0v3"/>`),
  warning: drawing(html`<path d="M12 4l9 16H3z"/><path d="M12 10v4M12 17v.5"/>`),
  done: drawing(html`<path d="M5 13l4 4L19 7"/>`),
  back: drawing(html`<path d="M15 6l-6 6 6 6"/>`),
  next: drawing(html`<path d="M9 6l6 6-6 6"/>`),
  replay: drawing(html`<path d="M4 12a8 8 0 1 0 3-6"/><path d="M4 4v5h5"/>`),
} as const;
