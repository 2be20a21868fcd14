/**
 * Keeps the digits of the service's numbers: money and usage are decimals, and an id may be larger than 2^53.
 * A JavaScript float would round either.
 */

/** Matches a string; if it is the key of a number, also the text between them and the number. */
const stringOrNumbered = /"[^"\\]*(?:\\.[^"\\]*)*"(?:(\s*:\s*)(-?\d[\d.eE+-]*))?/g;

/**
 * Parses valid JSON, and returns every number under one of `keys`, at any depth, as its source text. Works at
 * any depth, where a reviver of JSON.parse would run out of stack.
 */
export function parseExact(text: string, keys: ReadonlySet<string>): unknown {
  const quoted = text.replace(stringOrNumbered, (match: string, between?: string, number?: string) => {
    if (between === undefined || number === undefined) return match;
    const key = match.slice(0, match.length - between.length - number.length);
    return keys.has(JSON.parse(key)) ? `${key}${between}"${number}"` : match;
  });
  return JSON.parse(quoted);
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
