import { html, raw } from 'hono/html';
import { consolePolicy } from '../contract/retry-policy.ts';
import type { VerdictWord } from '../health/finding-type.ts';
import type { Verdict } from '../health/verdict.ts';
import { type AssetAddresses, documentOf } from '../web/document.ts';
import { badge, icons, type Markup, readableTime, type Tone, visibleText } from '../web/parts.ts';
import type { Identity } from './access.ts';

/** Pages in the order of the navigation. */
export const sections = {
  Overview: '/',
  Events: '/events',
  Companies: '/companies',
  Runs: '/runs',
  Deletes: '/deletes',
  Issues: '/issues',
  System: '/system',
  Log: '/log',
} as const;
export type Section = keyof typeof sections;

export interface Frame {
  readonly identity: Identity;
  readonly verdict: Verdict;
  readonly assets: AssetAddresses;
  /** Unix time in milliseconds. */
  readonly now: number;
}

export interface Page {
  readonly title: string;
  readonly section?: Section | undefined;
  /** The result of the last action. */
  readonly notice?: { readonly tone: Tone; readonly words: Markup | string } | undefined;
  /** Stands above the body and is not updated: forms, and other parts that must not change while in use. */
  readonly head?: Markup | undefined;
  readonly body: Markup;
  /** Whether the browser keeps the body up to date. */
  readonly live?: boolean;
}

export const verdictTones: Readonly<Record<VerdictWord, Tone>> = {
  'In sync': 'good',
  'Catching up': 'busy',
  'Needs you': 'uneasy',
  Broken: 'bad',
  Unknown: 'bad',
};

/** A whole document: search, navigation, notice, the page, and the time at which it was made. */
export function layout(frame: Frame, page: Page): Markup {
  const { identity, verdict, assets, now } = frame;
  const { title, section, notice, head, body, live = false } = page;
  return documentOf(
    assets,
    `${visibleText(title)} · metersync`,
    html`<a class="skip" href="#main">Skip to the content</a>
<header class="top"><div class="wide">
  <p class="brand">${icons.mark}<span><strong>metersync</strong></span></p>
  <form class="search" action="/trace" role="search"><label class="unseen" for="search">Search an id, a number or a name</label>
  <input id="search" name="q" type="search" placeholder="Id, invoice, meter or name" autocomplete="off" spellcheck="false" maxlength="300"><button class="outline small">Trace</button></form>
  <nav class="tabs" aria-label="Pages">${Object.entries(sections).map(
    ([name, at]) =>
      html`<a href="${at}" ${name === section ? raw('aria-current="page"') : ''}>${name}${name === 'Overview' && countOf(verdict)}</a>`,
  )}</nav>
</div></header>
<main id="main" class="wide" tabindex="-1">
  <div id="notice" role="status">${notice && html`<p class="notice ${notice.tone}">${notice.tone === 'good' ? icons.done : icons.warning}<span>${notice.words}</span></p>`}</div>
  ${head}
  <div id="page" ${live ? raw(`data-live="${consolePolicy.renewMs}"`) : ''}>${body}</div>
</main>
<footer class="wide muted small"><span id="as-of" ${live ? raw(`data-live="${consolePolicy.renewMs}"`) : ''}>As of <time datetime="${new Date(now).toISOString()}">${readableTime(new Date(now))}</time></span>
  ${live && html`<button type="button" class="outline small" data-pause hidden>Pause updates</button>`}
  <span>${visibleText(identity.name)}, ${identity.role}</span></footer>`,
  );
}

/** How many findings need attention. */
function countOf({ findings }: Verdict): Markup | '' {
  const ill = findings.filter(({ word }) => word !== 'In sync' && word !== 'Catching up').length;
  return ill === 0 ? '' : html`<span class="count">${ill}<span class="unseen"> need attention</span></span>`;
}

export const verdictBadge = (word: VerdictWord): Markup => badge(verdictTones[word], word);

/** A page without navigation, for unknown users and for failures. */
export const plainPage = (assets: AssetAddresses, title: string, words: string): Markup =>
  documentOf(
    assets,
    `${title} · metersync`,
    html`<main class="door"><p class="big-icon">${icons.lock}</p><h1>${title}</h1><p>${visibleText(words)}</p>
<p><a class="button outline" href="/">Overview</a></p></main>`,
  );

/** For an address that does not exist. */
export const missing: Page = {
  title: 'Not found',
  body: html`<div class="empty slim"><h1>Page not found</h1><p>Search above.</p></div>`,
};
