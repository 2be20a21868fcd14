/**
 * Characters that steer a terminal, change the direction of text, break a line or are invisible. Emoji keep
 * their variation selectors.
 */
const hidden = /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\ufe00-\ufe0f]]/gv;

/** Escapes hidden characters for one line of a terminal, as JSON does. JSON text stays the same JSON. */
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
