import { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { printable } from '../app/printable.ts';
import { rfc3339 } from '../contract/times.ts';

/**
 * Prints lines on standard output. A line may hold what others wrote: it stays one line and steers no terminal.
 * Commands print by this alone.
 */
export function print(...lines: readonly string[]): void {
  process.stdout.write(`${lines.map(printable).join('\n')}\n`);
}

/** JSON on one line; times as Postgres prints them are RFC 3339 in it. */
export const asJson = (value: unknown): string =>
  JSON.stringify(value, (_, one) => (typeof one === 'string' ? rfc3339(one) : one));

/** Prints a value as JSON, which is safe to look at in a terminal too. */
export const printJson = (value: unknown): void => print(asJson(value));

/** Tells a person lines on the standard error, as `print` does. */
export function say(...lines: readonly string[]): void {
  process.stderr.write(`${lines.map(printable).join('\n')}\n`);
}

/** Text that comes in pieces, its lines printed as `print` prints them. */
export function printingStream(): Writable {
  const decoder = new StringDecoder('utf8');
  return new Writable({
    write: (piece: Buffer, _, done) => {
      const lines = decoder.write(piece).split('\n');
      process.stdout.write(lines.map(printable).join('\n'), done);
    },
  });
}
