/**
 * Bytes that a payload may take as Postgres prints it. A number such as 1e131071 is five bytes of a
 * signed body and 131,072 digits of what is read back: a few kilobytes of them are gigabytes. So
 * much still fits one payload of Temporal's (2 MiB) as base64, in which a replay sends it again,
 * and a body of the receiver's 1 MiB takes no more unless it is made for it.
 */
export const printedBytesMax = 1_500_000;

/** A string, a number with its exponent, or what Postgres prints a space after. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE]([-+]?\d+))?|[,:]/g;

const exponent = /\d[eE][-+]?\d/;

/**
 * Whether JSON is longer than that as Postgres prints it. What is short and has no exponent is not
 * looked through.
 */
export function printsTooLong(json: string): boolean {
  const mayBe = 2 * Buffer.byteLength(json) > printedBytesMax || exponent.test(json);
  return mayBe && printedBytes(json) > printedBytesMax;
}

/** Bytes that Postgres prints at most of JSON, as which the text has been read before. */
export function printedBytes(json: string): number {
  let bytes = Buffer.byteLength(json);
  for (const [text, exponent] of json.matchAll(token)) {
    if (exponent !== undefined) bytes += Math.abs(Number(exponent));
    else if (text === ',' || text === ':') bytes += 1;
  }
  return bytes;
}
