/**
 * Numbers of the service keep the digits they were sent with: money and usage are decimals and an id may be
 * longer than 2^53, and a JavaScript float would round either.
 */

/** A string, and where it is the key of a number, what stands between the two and the number. */
const stringOrNumbered = /"[^"\\]*(?:\\.[^"\\]*)*"(?:(\s*:\s*)(-?\d[\d.eE+-]*))?/g;

/**
 * Parses what is known to be JSON, but gives every number that stands under one of `keys`, at any depth, as the text it was
 * sent as. However deep it nests: a reviver of JSON.parse would run out of stack.
 */
export function parseExact(text: string, keys: ReadonlySet<string>): unknown {
  const quoted = text.replace(stringOrNumbered, (whole: string, between?: string, number?: string) => {
    if (between === undefined || number === undefined) return whole;
    const key = whole.slice(0, whole.length - between.length - number.length);
    return keys.has(JSON.parse(key)) ? `${key}${between}"${number}"` : whole;
  });
  return JSON.parse(quoted);
}

/** A value as JSON text; undefined for one that nests too deeply to be written. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** A JSON object, as opposed to an array, a scalar or null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
