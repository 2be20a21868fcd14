import type { IncomingMessage } from 'node:http';
import type { HttpLimits } from '../contract/http-limits.ts';
import { createBodyBudget, type Incoming } from './body-budget.ts';
import type { Clock } from './clock.ts';

/** Why a body was not read to its end. */
export type BodyProblem = 'too-large' | 'too-many-pieces' | 'busy' | 'cut-short';

/** Reads the body of a request to its end, or says why not. */
export type ReadBody = (request: IncomingMessage, done: (body: Buffer | BodyProblem) => void) => void;

/**
 * Reads bodies as the bytes that were sent, within a bound for each and one for all. Anyone may open sockets
 * and send slowly, and must not take all memory that way. Small bodies, as most deliveries are, have a budget
 * of their own, which no large one can use up. Nothing is decompressed.
 */
export function createBodyReader(limits: HttpLimits, clock: Clock): ReadBody {
  const { bodyBytesMax, bodyPiecesMax, pieceBytes, smallBodyBytesMax } = limits;
  const pace = { bytesPerSecond: limits.bodiesBytesPerSecond, bytesAtOnce: limits.bodiesBytesAtOnce };
  const small = createBodyBudget({ bytesMax: limits.smallBodiesBytesMax, ...pace }, clock);
  const large = createBodyBudget({ bytesMax: limits.largeBodiesBytesMax, ...pace }, clock);
  return (request, done) => {
    const declared = Number(request.headers['content-length']);
    if (declared > bodyBytesMax) return done('too-large');
    // A chunked body, which does not declare its size, counts as large.
    const budget = declared <= smallBodyBytesMax ? small : large;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const body: Incoming = {
      pause: () => request.pause(),
      resume: () => request.resume(),
      crowdOut: () => end('busy'),
    };
    const end = (problem?: BodyProblem) => {
      request.off('data', onData).off('end', onEnd).off('error', onError).off('close', onError);
      budget.release(body);
      // Copies even a single chunk: it may be a view of a buffer that the socket fills again.
      done(problem ?? Buffer.concat(chunks, bytes));
    };
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > bodyBytesMax) end('too-large');
      else if (chunks.length > bodyPiecesMax) end('too-many-pieces');
      // A complete body needs no room any more: most deliveries come in one piece and never wait.
      else if (bytes !== declared) budget.take(body, chunk.length + pieceBytes);
    };
    const onEnd = () => end();
    const onError = () => end('cut-short');
    request.on('data', onData).on('end', onEnd).on('error', onError).on('close', onError);
  };
}
