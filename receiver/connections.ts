import type { Server } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Clock } from './clock.ts';
import type { HttpLimits } from './http-limits.ts';

/**
 * Bounds the sockets of a server. Node alone would refuse new sockets at the bound, so that idle ones could keep the
 * service's deliveries out: sockets between two requests make room before that. A socket that never sends a
 * request ends by `headersTimeout`.
 */
export function boundConnections(
  server: Server,
  {
    connectionsMax,
    connectionsBeforeIdleClose,
    idleCloseIntervalMs,
  }: Pick<HttpLimits, 'connectionsMax' | 'connectionsBeforeIdleClose' | 'idleCloseIntervalMs'>,
  clock: Clock,
): void {
  server.maxConnections = connectionsMax;
  let open = 0;
  let closedIdleAt = Number.NEGATIVE_INFINITY;
  server.on('connection', (socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
    if (open <= connectionsBeforeIdleClose || clock.now() - closedIdleAt < idleCloseIntervalMs) return;
    closedIdleAt = clock.now();
    server.closeIdleConnections();
  });
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
