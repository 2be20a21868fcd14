import { html } from 'hono/html';
import type { Markup } from '../../web/markup.ts';
import { visibleText } from '../../web/visible-text.ts';
import { layOutJson } from './json-layout.ts';

/** How many characters of one text a page shows at most. */
const shownCharactersMax = 60_000;

/** Renders a body as text. JSON is laid out and coloured; anything else stays unchanged. */
export function payloadText(text: string, label: string): Markup {
  const layout = layOutJson(text, shownCharactersMax);
  const cut = layout?.cut ?? text.length > shownCharactersMax;
  const body =
    layout?.pieces.map(({ kind, text: piece }) =>
      kind === 'space' || kind === 'mark' ? piece : html`<span class="${kind}">${visibleText(piece)}</span>`,
    ) ?? visibleText(text.slice(0, shownCharactersMax));
  return html`<pre class="payload" tabindex="0" role="region" aria-label="${label}"><code>${body}</code></pre>
    ${cut && html`<p class="muted small">Only the first ${shownCharactersMax.toLocaleString('en')} characters are shown.</p>`}`;
}

/** Bytes for a person: "512 B", "1.2 MB". */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const [value, unit] = bytes < 1_000_000 ? [bytes / 1_000, 'kB'] : [bytes / 1_000_000, 'MB'];
  return `${value.toFixed(1)} ${unit}`;
}
