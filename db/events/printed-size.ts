import { JsonTokens } from '../../contract/json.ts';

/**
 * Maximum bytes of a payload as Postgres prints it. A number such as 1e131071 is eight bytes of a
 * signed body and 131,072 digits when it is printed, so a few kilobytes of such numbers become
 * gigabytes. A replay sends payloads as base64, and a payload of this size then still fits into one
 * Temporal payload (2 MiB). A body within the receiver's 1 MiB exceeds it only if it was built to
 * do so.
 */
export const printedBytesMax = 1_500_000;

const exponent = /\d[eE]([-+]?\d+)/;

/** Whether JSON exceeds `printedBytesMax` as printed; short text without exponent does not. */
export function printsTooLong(json: string): boolean {
  const mayBe = 2 * Buffer.byteLength(json) > printedBytesMax || exponent.test(json);
  return mayBe && printedBytes(json) > printedBytesMax;
}

/** Returns the maximum number of bytes that Postgres prints for valid JSON. */
export function printedBytes(json: string): number {
  const tokens = new JsonTokens(json);
  let bytes = Buffer.byteLength(json);
  while (tokens.next()) {
    // It prints a space after each colon and comma.
    if (tokens.kind === 'name' || tokens.kind === 'comma') bytes += 1;
    if (tokens.kind !== 'number') continue;
    const [, digits] = exponent.exec(json.slice(tokens.from, tokens.to)) ?? [];
    bytes += Math.abs(Number(digits ?? 0));
  }
  return bytes;
}
