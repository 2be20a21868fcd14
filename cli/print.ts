import { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { printable } from '../app/process/printable.ts';
import { rfc3339 } from '../contract/times.ts';

/** Prints lines, escaped so that text from outside cannot control the terminal. Commands only print here. */
export function print(...lines: readonly string[]): void {
  process.stdout.write(`${lines.map(printable).join('\n')}\n`);
}

/** Writes JSON on one line, with the times of Postgres as RFC 3339. */
export const asJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner) => (typeof inner === 'string' ? rfc3339(inner) : inner));

/** Prints a value as JSON, which is safe for a terminal too. */
export const printJson = (value: unknown): void => print(asJson(value));

/** Prints lines for people on standard error, escaped as by `print`. */
export function say(...lines: readonly string[]): void {
  process.stderr.write(`${lines.map(printable).join('\n')}\n`);
}

/** Makes a stream that prints text in pieces, its lines escaped as by `print`. */
export function printingStream(): Writable {
  const decoder = new StringDecoder('utf8');
  return new Writable({
    write: (piece: Buffer, _, done) => {
      const lines = decoder.write(piece).split('\n');
      process.stdout.write(lines.map(printable).join('\n'), done);
    },
  });
}
