import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { MonotonicClock } from './clock.ts';
import type { HttpLimits } from './http-limits.ts';

/** Sockets that brought a verified delivery stay open. All other sockets make room for new sockets. */
export interface Connections {
  /** Notes that this socket brought a verified delivery. */
  verified(socket: Socket): void;
}

/**
 * Limits the sockets of a server. Node itself would refuse new sockets at the limit, so that idle sockets
 * could keep deliveries out. Above three quarters of it, each new socket closes (`crowded`) the oldest socket
 * that never brought a verified delivery. A stranger cannot hide the age of a socket.
 */
export function boundConnections(
  server: Server,
  { connectionsMax }: Pick<HttpLimits, 'connectionsMax'>,
  crowded: (socket: Socket) => void,
): Connections {
  const beforeStrangersEnd = (connectionsMax * 3) / 4;
  server.maxConnections = connectionsMax;
  /** Sockets that have not brought a verified delivery, in the order in which they were opened. */
  const strangers = new Set<Socket>();
  let open = 0;
  server.on('connection', (socket) => {
    open += 1;
    // Not the new socket, because it may bring a delivery.
    const [oldest] = strangers;
    strangers.add(socket);
    socket.once('close', () => {
      open -= 1;
      strangers.delete(socket);
    });
    if (oldest === undefined || open <= beforeStrangersEnd) return;
    // Removed at once, although the socket takes a moment to close.
    strangers.delete(oldest);
    crowded(oldest);
  });
  return {
    verified: (socket) => {
      strangers.delete(socket);
    },
  };
}

/** Limits how many requests of a socket wait for answers; `crowded` ends a socket that sends one more. */
export function boundUnanswered({ unansweredPerSocketMax }: Pick<HttpLimits, 'unansweredPerSocketMax'>): {
  /** Whether no further request of this socket is taken. */
  isFull(socket: Socket): boolean;
  watch(server: Server, crowded: (socket: Socket) => void): void;
} {
  const unanswered = new WeakMap<Socket, number>();
  const add = (socket: Socket, requests: number): void => {
    unanswered.set(socket, (unanswered.get(socket) ?? 0) + requests);
  };
  return {
    isFull: (socket) => socket.destroyed || (unanswered.get(socket) ?? 0) >= unansweredPerSocketMax,
    watch(server, crowded) {
      server.prependListener('request', ({ socket }, response) => {
        add(socket, 1);
        response.once('close', () => add(socket, -1));
      });
      // Node would answer two kinds of requests itself, however many requests wait: requests with an Expect
      // header, and requests after the last allowed request of a socket, which Node leaves open.
      server.on('checkExpectation', (request, response) => server.emit('request', request, response));
      server.on('dropRequest', (_request, socket) => crowded(socket as Socket));
    },
  };
}

/** What Node calls after each read and write of a socket, to restart its time-out. */
interface Refreshed {
  _unrefTimer(): void;
}

/**
 * Limits the bytes that come before the headers of a request are complete, because Node skips any number of
 * blank lines there. `exceeded` ends a socket that sends more. Looking at times would be too late: Node reads
 * 2 MB of one socket before it turns to the next. Listening to the bytes would take Node's parser off the
 * socket and cost 15 µs a request, so this looks at the number of bytes after each read.
 */
export function boundBeforeHeaders(limits: Pick<HttpLimits, 'bodyBytesMax' | 'beforeHeadersBytesMax'>): {
  /** Notes that the headers of a request are complete. Its body and the next headers may follow. */
  complete(request: IncomingMessage): void;
  watch(server: Server, exceeded: (socket: Socket) => void): void;
} {
  const { bodyBytesMax, beforeHeadersBytesMax } = limits;
  /** The number of bytes that a socket may have sent before the headers of its next request are complete. */
  const allowed = new WeakMap<Socket, number>();
  return {
    complete({ socket, headers }) {
      const body = Math.min(Number(headers['content-length'] ?? 0), bodyBytesMax);
      allowed.set(socket, socket.bytesRead + body + beforeHeadersBytesMax);
    },
    watch(server, exceeded) {
      server.on('connection', (socket: Socket & Refreshed) => {
        allowed.set(socket, beforeHeadersBytesMax);
        const refresh = socket._unrefTimer.bind(socket);
        socket._unrefTimer = () => {
          refresh();
          if (socket.bytesRead <= (allowed.get(socket) ?? 0)) return;
          socket._unrefTimer = refresh;
          exceeded(socket);
        };
      });
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
 * Ends the sockets that are left at close, after `drain`, when every accepted event has its answer. Node has
 * no time-out for this: a socket that sends a byte a second would delay the close.
 * @returns `closing` from the moment of the close
 */
export function endConnectionsAtClose(
  app: FastifyInstance,
  { closeGraceMs }: Pick<HttpLimits, 'closeGraceMs'>,
  clock: MonotonicClock,
  drain: () => Promise<void>,
): { readonly closing: boolean } {
  let closing = false;
  app.addHook('preClose', (done) => {
    closing = true;
    drain().then(() => {
      const cancel = clock.after(closeGraceMs, () => app.server.closeAllConnections());
      app.server.once('close', cancel);
    });
    done();
  });
  return {
    get closing() {
      return closing;
    },
  };
}
