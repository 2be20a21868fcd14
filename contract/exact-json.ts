/**
 * Reads JSON by its text, as JSON.parse loses what it cannot hold: digits of a number that a float would
 * round (money and usage are decimals, an id may be larger than 2^53), escapes, and how a record was written.
 */

/**
 * Drops a byte order mark from the start of a text. RFC 8259 lets a reader ignore it; neither JSON.parse nor
 * Postgres does.
 */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** Matches a string; if it is the key of a number, also the text between them and the number. */
const stringOrNumbered = /"[^"\\]*(?:\\.[^"\\]*)*"(?:(\s*:\s*)(-?\d[\d.eE+-]*))?/g;

/**
 * Parses valid JSON, and returns every number under one of `keys`, at any depth, as its source text. Works at
 * any depth, where a reviver of JSON.parse would run out of stack. Goes from match to match, as `replace`
 * keeps all matches at once: 25 times the text, if its records are small.
 */
export function parseExact(text: string, keys: ReadonlySet<string>): unknown {
  let quoted = '';
  let done = 0;
  for (const { 0: match, 1: between, 2: number, index } of text.matchAll(stringOrNumbered)) {
    if (between === undefined || number === undefined) continue;
    const key = match.slice(0, match.length - between.length - number.length);
    if (!keys.has(JSON.parse(key))) continue;
    const end = index + match.length;
    quoted += `${text.slice(done, end - number.length)}"${number}"`;
    done = end;
  }
  return JSON.parse(quoted + text.slice(done));
}

/**
 * Returns the source text of every number under `key` of the records, by position, without parsing the text
 * again; undefined where a record has no number there. Reads over a million records a second; a reviver reads
 * a quarter of that.
 *
 * Searches the text for `"key":`. Without a \u escape that is the only spelling of the key, so each record
 * with the key has it at least once. If there are exactly as many matches as such records, each record has
 * one, in order, and none is nested or repeated. Otherwise the result is empty: parse the text with
 * `parseExact`.
 * @param key letters alone
 */
export function numberTexts(
  text: string,
  key: string,
  records: readonly unknown[],
): readonly (string | undefined)[] {
  if (!records.some((record) => isObject(record) && typeof record[key] === 'number')) return [];
  if (text.includes('\\u')) return [];
  const found = new RegExp(`"${key}"\\s*:\\s*(-?[0-9][0-9.eE+-]*)?`, 'g');
  const numbers: (string | undefined)[] = [];
  let next = found.exec(text);
  for (const record of records) {
    if (!isObject(record) || !Object.hasOwn(record, key)) {
      numbers.push(undefined);
      continue;
    }
    if (next === null) return [];
    numbers.push(next[1]);
    next = found.exec(text);
  }
  return next === null ? numbers : [];
}

/** Writes a value as JSON; undefined if it nests too deeply. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Whether a value is a JSON object: not an array, a scalar or null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the position behind a string: after a quote that follows an even number of backslashes; -1 without
 * one.
 */
export function stringEnd(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1;
    while (text[before] === '\\') before -= 1;
    if ((quote - before) % 2 === 1) return quote + 1;
  }
  return -1;
}

const spaces = /[ \t\n\r]*/y;
/** Characters of a value without brackets. */
const scalar = /[^\s,\]}]+/y;
const [quote, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d];

/** Returns the text of each element of an array. */
export function elementTexts(array: string): string[] {
  const texts: string[] = [];
  for (let at = skip(array, skip(array, 0, spaces) + 1, spaces); array[at] !== ']'; ) {
    const end = valueEnd(array, at);
    texts.push(array.slice(at, end));
    at = skip(array, end, spaces);
    if (array[at] === ',') at = skip(array, at + 1, spaces);
  }
  return texts;
}

/** Returns the text of the last value under a key, which JSON.parse takes; undefined without one. */
export function memberText(object: string, key: string): string | undefined {
  let found: string | undefined;
  for (let at = skip(object, skip(object, 0, spaces) + 1, spaces); object[at] !== '}'; ) {
    const keyEnd = closedStringEnd(object, at);
    const start = skip(object, skip(object, keyEnd, spaces) + 1, spaces);
    const end = valueEnd(object, start);
    if (JSON.parse(object.slice(at, keyEnd)) === key) found = object.slice(start, end);
    at = skip(object, end, spaces);
    if (object[at] === ',') at = skip(object, at + 1, spaces);
  }
  return found;
}

function valueEnd(text: string, at: number): number {
  const first = text[at];
  if (first === '"') return closedStringEnd(text, at);
  if (first !== '[' && first !== '{') return skip(text, at, scalar);
  let depth = 0;
  for (let place = at; place < text.length; place += 1) {
    const code = text.charCodeAt(place);
    // Brackets inside strings do not count.
    if (code === quote) place = closedStringEnd(text, place) - 1;
    else if (code === openBracket || code === openBrace) depth += 1;
    else if (code === closeBracket || code === closeBrace) {
      depth -= 1;
      if (depth === 0) return place + 1;
    }
  }
  throw new Error('not JSON: a bracket is not closed');
}

function closedStringEnd(text: string, at: number): number {
  const end = stringEnd(text, at);
  if (end === -1) throw new Error('not JSON: a string is not closed');
  return end;
}

/** Returns where the pattern ends that begins at `at`. */
function skip(text: string, at: number, pattern: RegExp): number {
  pattern.lastIndex = at;
  if (!pattern.test(text)) throw new Error(`not JSON: ${pattern.source} at ${at}`);
  return pattern.lastIndex;
}
