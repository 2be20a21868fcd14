import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Clock } from './clock.ts';
import type { HttpLimits } from './http-limits.ts';

/** Sockets that brought a verified delivery stay; strangers make room. */
export interface Connections {
  /** Notes that a delivery came by this socket and was verified. */
  verified(socket: Socket): void;
}

/**
 * Bounds the sockets of a server. Node alone would refuse new sockets at the bound, so that those that are there, idle
 * or busy with a request that never ends, could keep the service's deliveries out. So sockets between two requests make
 * room first. Then the oldest socket by which no verified delivery ever came does, for each new one: a delivery needs
 * its socket for moments, and age is the one thing that a stranger who wants to stay cannot hide.
 * @param crowded ends a socket that has to make room
 */
export function boundConnections(
  server: Server,
  {
    connectionsMax,
    connectionsBeforeStrangersEnd,
    connectionsBeforeIdleClose,
    idleCloseIntervalMs,
  }: Pick<
    HttpLimits,
    'connectionsMax' | 'connectionsBeforeStrangersEnd' | 'connectionsBeforeIdleClose' | 'idleCloseIntervalMs'
  >,
  clock: Clock,
  crowded: (socket: Socket) => void,
): Connections {
  server.maxConnections = connectionsMax;
  /** In the order in which they were opened. */
  const strangers = new Set<Socket>();
  let open = 0;
  let closedIdleAt = Number.NEGATIVE_INFINITY;
  server.on('connection', (socket) => {
    open += 1;
    strangers.add(socket);
    socket.once('close', () => {
      open -= 1;
      strangers.delete(socket);
    });
    if (open > connectionsBeforeStrangersEnd) {
      const [oldest] = strangers;
      // Not looked at again, though it takes a moment to close.
      strangers.delete(oldest as Socket);
      crowded(oldest as Socket);
    }
    if (open <= connectionsBeforeIdleClose || clock.now() - closedIdleAt < idleCloseIntervalMs) return;
    closedIdleAt = clock.now();
    server.closeIdleConnections();
  });
  return {
    verified: (socket) => {
      strangers.delete(socket);
    },
  };
}

/**
 * At close, ends the sockets that are left once every event that was taken has its answer: one that sends its
 * request a byte a second would otherwise hold the close, for which Node then has no timeout.
 * @returns `add` for an event that is taken and `remove` for its answer; `closing` from the moment of the close
 */
export function endConnectionsAtClose(
  app: FastifyInstance,
  { closeGraceMs }: Pick<HttpLimits, 'closeGraceMs'>,
  clock: Clock,
): { readonly closing: boolean; add(): void; remove(): void } {
  let closing = false;
  let waiting = 0;
  const endWhenAnswered = () => {
    if (!closing || waiting > 0) return;
    const takeBack = clock.after(closeGraceMs, () => app.server.closeAllConnections());
    app.server.once('close', takeBack);
  };
  app.addHook('preClose', (done) => {
    closing = true;
    endWhenAnswered();
    done();
  });
  return {
    get closing() {
      return closing;
    },
    add() {
      waiting += 1;
    },
    remove() {
      waiting -= 1;
      endWhenAnswered();
    },
  };
}
