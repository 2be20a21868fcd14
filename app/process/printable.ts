/**
 * Characters that steer a terminal, change the direction of text, break a line or are invisible: C0 and C1
 * controls, direction marks, zero-width and line separators, tags, lone surrogates. Emoji keep their
 * variation selectors.
 */
const hidden = /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\ufe00-\ufe0f]]/gv;

/**
 * Makes untrusted text safe for one line of a terminal: it escapes hidden characters as JSON does, `\u202e`
 * or `\n`. JSON text on one line stays the same JSON.
 */
export const printable = (text: string): string => text.replaceAll(hidden, escaped);

function escaped(char: string): string {
  const asJson = JSON.stringify(char).slice(1, -1);
  if (asJson !== char) return asJson;
  const units = Array.from({ length: char.length }, (_, place) => char.charCodeAt(place));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** Makes every text and field name in a value safe for a terminal. Lines of a stack stay lines. */
export function printableValue(value: unknown, name = ''): unknown {
  if (typeof value === 'string') {
    return name === 'stack' ? value.split('\n').map(printable).join('\n') : printable(value);
  }
  if (Array.isArray(value)) return value.map((item) => printableValue(item));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, field]) => [printable(key), printableValue(field, key)]);
  return Object.fromEntries(fields);
}
