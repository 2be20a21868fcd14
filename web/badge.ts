import { html } from 'hono/html';
import type { Markup } from './markup.ts';

/** The state of something by colour. The words say it, too. */
export type Tone = 'good' | 'bad' | 'uneasy' | 'busy' | 'plain';

export const badge = (tone: Tone, words: string): Markup => html`<span class="badge ${tone}">${words}</span>`;
