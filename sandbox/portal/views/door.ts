import { html } from 'hono/html';
import type { AssetAddresses } from '../../../web/assets.ts';
import { documentOf } from '../../../web/document.ts';
import type { Markup } from '../../../web/markup.ts';
import { visibleText } from '../../../web/visible-text.ts';
import { icons } from '../icons.ts';
import type { LinkRefusal } from '../links.ts';

const refusals: Readonly<Record<LinkRefusal, { title: string; words: string; next: Markup }>> = {
  unknown: {
    title: 'This link opens nothing',
    words: 'It may have been cut short on its way here, or this browser has not opened it yet.',
    next: html`Open the whole link again, or ask for a new one with <code>POST /external/configure_webhook</code>.`,
  },
  expired: {
    title: 'This link has expired',
    words: 'A link to the webhook portal opens for 7 days.',
    next: html`Ask for a new one with <code>POST /external/configure_webhook</code>.`,
  },
  disabled: {
    title: 'Webhooks are disabled',
    words: 'While they are, the portal of this organization stays shut and no new events are sent.',
    next: html`Enable them with <code>PATCH /external/configure_webhook</code> and the body
<code>{"enabled": true}</code>; this link then opens again.`,
  },
};

const titles: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Not found',
  409: 'Not possible now',
  500: 'Something went wrong',
};

/** Says why nothing is shown, and what to do. `base` is the address of an open portal's pages. */
export function closedPage(
  assets: AssetAddresses,
  reason: LinkRefusal | { readonly status: number; readonly words: string },
  base: string | undefined,
): Markup {
  const { title, words, next } =
    typeof reason === 'string'
      ? refusals[reason]
      : {
          title: titles[reason.status] ?? 'That did not work',
          words: reason.words,
          next: base === undefined ? '' : html`<a href="${base}/endpoints">Back to the endpoints</a>`,
        };
  return documentOf(
    assets,
    title,
    html`<main class="door"><p class="big-icon">${typeof reason === 'string' ? icons.lock : icons.warning}</p>
<h1>${title}</h1><p>${visibleText(words)}</p><p>${next}</p></main>`,
  );
}
