import { html } from 'hono/html';
import type { Markup } from './markup.ts';

/** Draws an icon on a grid of 24 by 24. Screen readers skip it, so it needs words or a named element. */
export const drawing = (shape: Markup): Markup =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${shape}</svg>`;

export const icons = {
  mark: drawing(html`<path d="M4 13a8 8 0 0 1 16 0"/><path d="M12 13l4-5"/><path d="M4 17h16"/>`),
  copy: drawing(html`<rect x="9" y="9" width="11" height="11" rx="2"/><path d="M5 15V6a2 2 0 0 1 2-2h9"/>`),
  lock: drawing(html`<rect x="5" y="11" width="14" height="9" rx="2"/><path d="M8 11V8a4 4 0 0 1 8 0v3"/>`),
  warning: drawing(html`<path d="M12 4l9 16H3z"/><path d="M12 10v4M12 17v.5"/>`),
  done: drawing(html`<path d="M5 13l4 4L19 7"/>`),
} as const;
