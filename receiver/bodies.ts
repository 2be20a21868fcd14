import type { IncomingMessage } from 'node:http';
import { createBodyBudget, type Incoming } from './body-budget.ts';
import type { MonotonicClock } from './clock.ts';
import type { HttpLimits } from './http-limits.ts';

/** Ends the reading of a body whose memory others need. */
class Crowded extends Error {
  readonly code = 'CROWDED';
}

/**
 * Limits the bodies that are being read at the same time; Fastify reads them, and limits each. Anyone may
 * open sockets and send slowly, and must not take all memory that way. Small bodies, which most deliveries
 * have, have a budget of their own that no large body can use up.
 * @returns a function that watches the body of a request which is about to be read. If the body has to make
 *   room, its request emits an error with the code CROWDED.
 */
export function boundBodies(limits: HttpLimits, clock: MonotonicClock): (request: IncomingMessage) => void {
  const { bodyBytesMax, smallBodyBytesMax, pieceBytes } = limits;
  const pace = { bytesPerSecond: limits.bodiesBytesPerSecond, bytesAtOnce: limits.bodiesBytesAtOnce };
  const small = createBodyBudget({ bytesMax: limits.smallBodiesBytesMax, ...pace }, clock);
  const large = createBodyBudget({ bytesMax: limits.largeBodiesBytesMax, ...pace }, clock);
  return (request) => {
    const declared = Number(request.headers['content-length'] ?? 0);
    // Fastify answers it 413, and reads nothing.
    if (declared > bodyBytesMax) return;
    const budget = declared <= smallBodyBytesMax ? small : large;
    let bytes = 0;
    const leave = () => {
      request.off('data', onData).off('close', leave);
      budget.release(body);
    };
    const body: Incoming = {
      pause: () => request.pause(),
      resume: () => request.resume(),
      crowdOut: () => {
        leave();
        request.emit('error', new Crowded());
      },
    };
    const onData = (piece: Buffer) => {
      bytes += piece.length;
      // A complete body needs no room any more: most deliveries come in one piece and never wait.
      if (bytes < declared) budget.take(body, piece.length + pieceBytes);
      else leave();
    };
    request.on('data', onData).on('close', leave);
  };
}
