import { html } from 'hono/html';
import type { Finding } from '../health/verdict.ts';
import type { Markup } from '../web/markup.ts';
import { verdictBadge } from './frame.ts';
import { ago, text } from './parts.ts';

/** Findings, each with what to do and since when its alarm is open. */
export const findingCards = (findings: readonly Finding[], now: number): Markup =>
  html`<ul class="cards">${findings.map(
    ({ name, word, saw, todo, open }) =>
      html`<li class="card"><div class="row"><strong>${text(name)}</strong>${verdictBadge(word)}</div>
<p>${text(saw)}</p>${open !== null && html`<p class="muted small">Open since ${ago(open.since, now)}; ${open.notifiedAt === null ? 'nobody was notified' : html`notified ${ago(open.notifiedAt, now)}`}.</p>`}
<p><b>What to do:</b> ${text(todo)}</p></li>`,
  )}</ul>`;
