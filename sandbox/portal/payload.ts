import { html } from 'hono/html';
import { type Markup, visibleText } from '../../web/parts.ts';

/** How many characters of one text a page shows at most. */
const shownCharactersMax = 60_000;

/** Renders a body as text. JSON is laid out over lines; anything else stays unchanged. */
export function payloadText(text: string, label: string): Markup {
  const shown = layOutJson(text, shownCharactersMax) ?? text;
  return html`<pre class="payload" tabindex="0" role="region" aria-label="${label}"><code>${visibleText(shown.slice(0, shownCharactersMax))}</code></pre>
    ${shown.length > shownCharactersMax && html`<p class="muted small">Only the first ${shownCharactersMax.toLocaleString('en')} characters are shown.</p>`}`;
}

/** Bytes for a person: "512 B", "1.2 MB". */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const [value, unit] = bytes < 1_000_000 ? [bytes / 1_000, 'kB'] : [bytes / 1_000_000, 'MB'];
  return `${value.toFixed(1)} ${unit}`;
}

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** The largest depth of indentation, so that a text of brackets does not grow by the square. */
const indentMax = 40;

/**
 * Lays JSON out over lines, and stops soon after `lengthMax` characters. Big numbers, repeated names and escapes
 * stay as they were sent, which parsing would lose. Undefined if the text is not JSON.
 */
export function layOutJson(text: string, lengthMax: number): string | undefined {
  if (!isJson(text)) return undefined;
  let laidOut = '';
  let depth = 0;
  let before = '';
  for (const [token] of text.matchAll(tokens)) {
    if (laidOut.length > lengthMax) break;
    const opened = before === '{' || before === '[';
    const closes = token === '}' || token === ']';
    if (closes) depth--;
    if (before === ',' || opened !== closes) laidOut += `\n${'  '.repeat(Math.min(depth, indentMax))}`;
    laidOut += token === ':' ? ': ' : token.slice(0, lengthMax);
    if (token === '{' || token === '[') depth++;
    before = token;
  }
  return laidOut;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
