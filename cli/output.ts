import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { printable } from '../app/process/printable.ts';
import { createPrivateFile, type PrivateFile } from '../app/process/private-file.ts';
import { rfc3339 } from '../contract/times.ts';

/** A mistake of the caller: printed without a stack, exit status 2. */
export class UsageError extends Error {}

/** A failure with a message for people: printed without a stack, exit status 1. */
export class CommandError extends Error {}

/** Prints lines, escaped so that text from outside cannot control the terminal. Commands only print here. */
export function print(...lines: readonly string[]): void {
  process.stdout.write(`${lines.map(printable).join('\n')}\n`);
}

/** Writes JSON on one line, with the times of Postgres as RFC 3339. */
export const asJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner) => (typeof inner === 'string' ? rfc3339(inner) : inner));

/** Prints a value as JSON, which is safe for a terminal too. */
export const printJson = (value: unknown): void => print(asJson(value));

/** Prints a result: as JSON if the user asked for that, otherwise in lines for people. */
export function answer<T>(
  { json = false }: { readonly json?: boolean },
  result: T,
  inWords: (result: T) => readonly string[],
): void {
  if (json) printJson(result);
  else print(...inWords(result));
}

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

/** Checks the folder of an output file before the work begins; throws a CommandError if it is not there. */
export function requireFolder(path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new CommandError(`${path}: the folder ${folder} does not exist`);
}

/** Codes of a full disk, a quota, a limited file size, or a failing device. */
const noRoom = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'];

/** Writes a private output file, which appears once complete. A failure or a signal removes a part. */
export async function writeOutputFile<T>(
  path: string,
  write: (stream: PrivateFile['stream']) => Promise<T>,
): Promise<T> {
  let file: PrivateFile | undefined;
  const interrupted = (signal: 'SIGINT' | 'SIGTERM') => {
    file?.discard();
    process.exit(128 + constants.signals[signal]);
  };
  // Listens before there is a file: a user who sees it may already interrupt.
  process.on('SIGINT', interrupted);
  process.on('SIGTERM', interrupted);
  try {
    file = createPrivateFile(path);
    const result = await write(file.stream);
    await file.keep();
    return result;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (!noRoom.includes(code)) throw error;
    throw new CommandError(`${path} could not be written, and the unfinished file was removed: ${message}`);
  } finally {
    process.off('SIGINT', interrupted);
    process.off('SIGTERM', interrupted);
    file?.discard();
  }
}
