import type { IncomingMessage } from 'node:http';
import type { HttpLimits } from './http-limits.ts';

/** The error that ends the reading of a body whose memory other bodies need. */
class Crowded extends Error {
  readonly code = 'CROWDED';
}

/** A body that is being read. If it is ended to make room for others, it has to `release` what it holds. */
export interface Incoming {
  crowdOut(): void;
}

/** Memory that unverified bodies share. */
export interface SharedMemory {
  /** Accounts for bytes that were read of a body. This may crowd out this body or another body. */
  take(body: Incoming, bytes: number): void;
  /** Gives back all that a body holds, once it is complete or ended. */
  release(body: Incoming): void;
  readonly held: number;
}

/**
 * Limits the memory that bodies share. Beyond the limit the body that began first is ended, because it had
 * the most time. Other measures of slowness can be cheated, for example by a byte now and then.
 */
export function shareMemory(bytesMax: number): SharedMemory {
  /** The bytes that each body holds, in the order in which the bodies began. */
  const holds = new Map<Incoming, number>();
  let held = 0;
  return {
    get held() {
      return held;
    },
    take(body, bytes) {
      holds.set(body, (holds.get(body) ?? 0) + bytes);
      held += bytes;
      while (held > bytesMax) {
        const [first] = holds.keys();
        first?.crowdOut();
      }
    },
    release(body) {
      held -= holds.get(body) ?? 0;
      holds.delete(body);
    },
  };
}

/**
 * Limits the memory of all bodies that are being read; Fastify limits the size of each. Small bodies, as most
 * deliveries have, share memory of their own that large bodies cannot take.
 * @returns a function that watches the body of a request that is about to be read. If the body has to make
 *   room, its request emits an error with the code CROWDED
 */
export function boundBodies(limits: HttpLimits): (request: IncomingMessage) => void {
  const { bodyBytesMax, smallBodyBytesMax, pieceBytes } = limits;
  const small = shareMemory(limits.smallBodiesBytesMax);
  const large = shareMemory(limits.largeBodiesBytesMax);
  return (request) => {
    const declared = Number(request.headers['content-length'] ?? 0);
    // Fastify answers this request with 413, and does not read its body.
    if (declared > bodyBytesMax) return;
    const memory = declared <= smallBodyBytesMax ? small : large;
    let bytes = 0;
    const leave = () => {
      request.off('data', onData).off('close', leave);
      memory.release(body);
    };
    const body: Incoming = {
      crowdOut: () => {
        leave();
        request.emit('error', new Crowded());
      },
    };
    const onData = (piece: Buffer) => {
      bytes += piece.length;
      // A complete body needs no room any more: most deliveries come in one piece.
      if (bytes < declared) memory.take(body, piece.length + pieceBytes);
      else leave();
    };
    request.on('data', onData).on('close', leave);
  };
}
