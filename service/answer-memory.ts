import { Failure } from '../contract/failures.ts';

/** Memory that every answer takes, however short it is: its socket, headers and pending calls. */
const answerBytesMin = 16 * 1024;
/** Memory that a parsed object or array takes in addition to its text, in units of `AnswerMemory`. */
const containerBytes = 8;

export interface AnswerPart {
  /**
   * Takes memory for a piece. If there is none, returns a promise that waits for it, or rejects on an abort.
   * @throws Failure SERVICE_ANSWER_UNREADABLE when the answer takes more than one answer may
   */
  take(piece: Buffer, signal: AbortSignal): Promise<void> | undefined;
  /** Ends the growth of the part: the answer was read to its end. */
  complete(): void;
  /** Gives the part back. Further calls do nothing. */
  release(): void;
}

/**
 * The memory of all answers of one client, from their first byte until their records are written, in bytes of
 * decompressed text. Each byte of text takes up to eight, as text, parsed records and copies for Postgres.
 * Small objects take more, so some bytes are added for each object.
 *
 * The oldest answer that is still being read may always grow to `answerMax`, and the others share the rest.
 * So the total is never exceeded, and no answer waits for a younger answer.
 */
export interface AnswerMemory {
  /** Begins an answer, which waits until there is memory for its start. */
  begin(signal: AbortSignal): { readonly part: AnswerPart; readonly begun: Promise<void> | undefined };
  readonly used: number;
}

interface Reader {
  size: number;
  waiting: { readonly bytes: number; readonly go: () => void } | undefined;
}

export function createAnswerMemory({
  total,
  answerMax,
}: {
  readonly total: number;
  readonly answerMax: number;
}): AnswerMemory {
  /** Answers that are being read, the oldest first. */
  const readers = new Set<Reader>();
  let used = 0;

  const fits = (reader: Reader, bytes: number): boolean => {
    const [oldest = reader] = readers;
    if (used + bytes > total) return false;
    return reader === oldest || used - oldest.size + bytes <= total - answerMax;
  };
  const add = (reader: Reader, bytes: number): void => {
    reader.size += bytes;
    used += bytes;
  };
  const letWaitingGo = (): void => {
    for (const reader of readers) {
      const { waiting } = reader;
      if (waiting === undefined || !fits(reader, waiting.bytes)) continue;
      add(reader, waiting.bytes);
      waiting.go();
    }
  };

  const grow = (reader: Reader, bytes: number, signal: AbortSignal): Promise<void> | undefined => {
    if (reader.size + bytes > answerMax)
      throw new Failure(
        'SERVICE_ANSWER_UNREADABLE',
        `the answer takes more than ${answerMax} bytes of memory`,
      );
    if (fits(reader, bytes)) {
      add(reader, bytes);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const end = (): void => {
        reader.waiting = undefined;
        signal.removeEventListener('abort', abort);
      };
      const abort = (): void => {
        end();
        reject(signal.reason);
      };
      const go = (): void => {
        end();
        resolve();
      };
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      reader.waiting = { bytes, go };
    });
  };

  return {
    begin(signal) {
      const reader: Reader = { size: 0, waiting: undefined };
      readers.add(reader);
      const complete = (): void => {
        if (readers.delete(reader)) letWaitingGo();
      };
      const part: AnswerPart = {
        take: (piece, during) => grow(reader, memoryOf(piece), during),
        complete,
        release() {
          used -= reader.size;
          reader.size = 0;
          readers.delete(reader);
          letWaitingGo();
        },
      };
      return { part, begun: grow(reader, answerBytesMin, signal) };
    },
    get used() {
      return used;
    },
  };
}

/** Counts a piece of an answer: its bytes, and more for each object and array that may begin in it. */
function memoryOf(piece: Buffer): number {
  // Searching a text for a character is eight times as fast as a loop over the bytes.
  const text = piece.toString('latin1');
  let containers = 0;
  for (const bracket of ['{', '['])
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) containers += 1;
  return piece.length + containers * containerBytes;
}
