/** Bytes of a name that Postgres keeps; the rest it would cut off, wherever that is. */
export const nameBytesMax = 63;

/**
 * The name of a field as a name of SQL: snake_case, of letters and digits of any script, at most 63
 * bytes long. It may be a word of SQL, and then has to be quoted like one with letters beyond a to
 * z.
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

/** The name, or the first of name_2, name_3 and so on that nothing else has. */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  let free = cut(name, nameBytesMax);
  for (let n = 2; isTaken(free); n++) free = `${cut(name, nameBytesMax - `_${n}`.length)}_${n}`;
  return free;
}

/** As many whole characters as fit into so many bytes. */
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
