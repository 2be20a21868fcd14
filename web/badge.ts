import { html } from 'hono/html';
import type { Markup } from './markup.ts';

/** The colour of a badge. Its words say the same, for readers who cannot tell colours apart. */
export type Tone = 'good' | 'bad' | 'uneasy' | 'busy' | 'plain';

export const badge = (tone: Tone, words: string): Markup => html`<span class="badge ${tone}">${words}</span>`;
