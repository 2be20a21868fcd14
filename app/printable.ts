/**
 * Characters that steer a terminal, turn the text around them, break a line or are not seen: controls of both sets,
 * direction marks, zero-width and line separators, tags, lone halves of surrogate pairs. Emoji keep what varies them.
 */
const hidden = /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\ufe00-\ufe0f]]/gv;

/**
 * One line as a terminal may show it, whoever wrote it: what is hidden is written as in JSON, `\u202e` or `\n`.
 * JSON text on one line stays the same JSON.
 */
export const printable = (text: string): string => text.replaceAll(hidden, escaped);

function escaped(char: string): string {
  const asJson = JSON.stringify(char).slice(1, -1);
  if (asJson !== char) return asJson;
  const units = Array.from({ length: char.length }, (_, place) => char.charCodeAt(place));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** Every text in a value, and every name of a field, as a terminal may show it. Lines of a stack stay lines. */
export function printableValue(value: unknown, name = ''): unknown {
  if (typeof value === 'string') {
    return name === 'stack' ? value.split('\n').map(printable).join('\n') : printable(value);
  }
  if (Array.isArray(value)) return value.map((one) => printableValue(one));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, one]) => [printable(key), printableValue(one, key)]);
  return Object.fromEntries(fields);
}
