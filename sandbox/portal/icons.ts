import { html } from 'hono/html';
import { drawing, icons as shared } from '../../web/icons.ts';

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
