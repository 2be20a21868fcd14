import { html } from 'hono/html';

/** A piece of a page. A template escapes every value that is not such a piece. */
export type Markup = ReturnType<typeof html>;

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

/** The colour of a badge. Its words say the same, for readers who cannot tell colours apart. */
export type Tone = 'good' | 'bad' | 'uneasy' | 'busy' | 'plain';

export const badge = (tone: Tone, words: string): Markup => html`<span class="badge ${tone}">${words}</span>`;

/** A value in fixed-width type with a button that copies it. `what` names it, for example "message id". */
export const copyable = (value: string, what: string): Markup =>
  html`<span class="copyable"><code><bdi>${visibleText(value)}</bdi></code><button type="button" class="quiet copy"
    data-copy="${value}" aria-label="Copy ${what}" title="Copy ${what}">${icons.copy}</button></span>`;

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

const english = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

/** Says in words how many seconds from now something is: "3 minutes ago", "in 5 hours", "just now". */
export function relativeTime(seconds: number): string {
  const [unit, size] = units.find((one) => Math.abs(seconds) >= one[1]) ?? ['second', 1];
  const count = Math.trunc(seconds / size);
  return count === 0 ? 'just now' : english.format(count, unit);
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' });

/** A time to the second: "21 Nov 2026, 09:47:41 UTC". */
export const readableTime = (at: Date): string => `${day.format(at)} UTC`;

/**
 * Characters that a reader cannot see or that change the direction of text around them: controls, marks, line
 * separators, tags and lone surrogates. Tab and line feed are not among them.
 */
const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\p{Surrogate}]|[\u{e0000}-\u{e007f}]/gu;

/** Makes text that a reader can trust: invisible characters are written as in JSON, for example `\u202e`. */
export const visibleText = (text: string): string => text.replace(invisible, escaped);

const escaped = (found: string): string =>
  Array.from({ length: found.length }, (_, place) => found.charCodeAt(place))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');
