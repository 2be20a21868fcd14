/** Maximum number of bytes in a name. Postgres cuts off the rest. */
export const nameBytesMax = 63;

/**
 * Converts a field's name to an SQL name: snake_case, of letters and digits of any script, at most
 * 63 bytes. It may be an SQL keyword, and then needs quotes, as do letters beyond a to z.
 */
export function snakeCase(field: string): string {
  const words = field
    .normalize('NFKC')
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1_$2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1_$2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}]+/gu, '_')
    .replace(/^_+|_+$/g, '');
  if (words === '') return 'field';
  return cut(/^\p{N}/u.test(words) ? `_${words}` : words, nameBytesMax);
}

/** Returns the name, or the first of name_2, name_3 and so on that is free. */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  let free = cut(name, nameBytesMax);
  for (let n = 2; isTaken(free); n++) free = `${cut(name, nameBytesMax - `_${n}`.length)}_${n}`;
  return free;
}

/** Cuts a text to whole characters within a number of bytes. */
function cut(text: string, bytesMax: number): string {
  let bytes = 0;
  let fitting = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > bytesMax) break;
    fitting += character;
  }
  return fitting;
}
