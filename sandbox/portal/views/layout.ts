import { html, raw } from 'hono/html';
import type { AssetAddresses } from '../../../web/assets.ts';
import { documentOf } from '../../../web/document.ts';
import type { Markup } from '../../../web/markup.ts';
import { visibleText } from '../../../web/visible-text.ts';
import type { Micros } from '../../timestamps.ts';
import { toText } from '../../timestamps.ts';
import { icons } from '../icons.ts';
import { readableTime, relativeTime } from '../relative-time.ts';

/** What every page of an open portal needs. */
export interface Frame {
  /** The address below which this portal's pages are: `/portal/o/{link}`. */
  readonly base: string;
  readonly organization: string;
  readonly expiresAt: string;
  /** The service's time, from which "3 minutes ago" is counted. */
  readonly now: Micros;
  readonly assets: AssetAddresses;
}

export interface Page {
  readonly title: string;
  readonly section: 'Endpoints' | 'Messages';
  /** Shown at the top: the result of the last request. */
  readonly notice?: string | undefined;
  readonly body: Markup;
}

/** A whole document: skip link, navigation, notice, the page, and until when the link is valid. */
export function layout(frame: Frame, { title, section, notice, body }: Page): Markup {
  const { base, organization, expiresAt, now } = frame;
  const tab = (name: Page['section'], address: string, icon: Markup) =>
    html`<a href="${base}${address}" ${section === name ? raw('aria-current="page"') : ''}>${icon}${name}</a>`;
  return documentOf(
    frame.assets,
    `${title} · ${visibleText(organization)}`,
    html`<a class="skip" href="#main">Skip to the content</a>
<header class="top"><div class="wide">
  <p class="brand">${icons.mark}<span><strong>Webhooks</strong><bdi>${visibleText(organization)}</bdi></span></p>
  <nav class="tabs" aria-label="Portal">${tab('Endpoints', '/endpoints', icons.endpoint)}${tab('Messages', '/messages', icons.message)}</nav>
</div></header>
<main id="main" class="wide" tabindex="-1">
  <div id="notice" role="status">${notice && html`<p class="notice good">${icons.done}${notice}</p>`}</div>
  ${body}
</main>
<footer class="wide muted small">
  <span>This portal link opens until <time datetime="${expiresAt}Z">${readableTime(expiresAt)}</time> (${relativeTime(expiresAt, now)}).</span>
  <span>The service’s clock shows ${readableTime(toText(now))}.</span>
</footer>`,
  );
}
