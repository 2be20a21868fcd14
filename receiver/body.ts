import type { IncomingMessage } from 'node:http';
import type { HttpLimits } from './http-limits.ts';

/** Why a body was not read to its end. */
export type BodyProblem = 'too-large' | 'busy' | 'cut-short';

/** Reads the body of a request to its end, or says why not. */
export type ReadBody = (request: IncomingMessage, done: (body: Buffer | BodyProblem) => void) => void;

/**
 * Reads bodies as the bytes that were sent, within a bound for each and one for all that are being read: anyone may
 * open sockets and send bodies slowly, and memory must not be theirs to take. Nothing is decompressed.
 */
export function createBodyReader({
  bodyBytesMax,
  bodiesBytesMax,
}: Pick<HttpLimits, 'bodyBytesMax' | 'bodiesBytesMax'>): ReadBody {
  let bytesOfAll = 0;
  return (request, done) => {
    if (Number(request.headers['content-length']) > bodyBytesMax) return done('too-large');
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (problem?: BodyProblem) => {
      request.off('data', onData).off('end', onEnd).off('error', onError).off('close', onError);
      bytesOfAll -= bytes;
      // Copied even when it is one chunk: a chunk may be a view of a buffer that the socket fills again.
      done(problem ?? Buffer.concat(chunks, bytes));
    };
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      bytesOfAll += chunk.length;
      if (bytes > bodyBytesMax) end('too-large');
      else if (bytesOfAll > bodiesBytesMax) end('busy');
    };
    const onEnd = () => end();
    const onError = () => end('cut-short');
    request.on('data', onData).on('end', onEnd).on('error', onError).on('close', onError);
  };
}
