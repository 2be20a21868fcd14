import { IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { AnswerReason } from './answers.ts';

/** Says why a request is refused at its headers; undefined if it is not. */
export type JudgeHeaders = (request: IncomingMessage) => AnswerReason | undefined;

/**
 * Makes the class of a server's requests. Each is judged once, as soon as its headers are complete.
 *
 * Destroying a socket does not stop Node's parser: it goes on through the 64 kB that were read, which costs
 * some 10 ms. It only stops at an upgrade, where the bytes after the headers are not HTTP. So a refused
 * request presents itself as an upgrade, and `onRefused` answers it on the raw socket. An upgrade that a
 * client asks for is never granted.
 */
export function judgedRequests(judge: JudgeHeaders) {
  return class JudgedRequest extends IncomingMessage {
    refusal: AnswerReason | null | undefined;

    /** Node reads this when the headers are complete, and again when it has parsed what it read. */
    get upgrade(): boolean {
      if (this.refusal === undefined) this.refusal = judge(this) ?? null;
      return this.refusal !== null || this.method === 'CONNECT';
    }

    /** Node notes here what the client asks for. */
    set upgrade(_asked: unknown) {}
  };
}

/** Calls `refuse` with each request that was refused at its headers, and its socket. */
export function onRefused(server: Server, refuse: (socket: Socket, reason: AnswerReason) => void): void {
  server.on('upgrade', (request, socket) => {
    // Node has taken its own listeners off this socket.
    socket.on('error', () => {});
    const { refusal } = request as IncomingMessage & { refusal: AnswerReason };
    refuse(socket as Socket, refusal);
  });
}
