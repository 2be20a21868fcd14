import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type AnswerReason, answerBody, answerStatus } from './answers.ts';

/** Answers input that is no request, and ends the socket: nobody knows where the next request begins. */
export function answerClientErrors(
  count: (reason: AnswerReason) => void,
): (error: { code?: string }, socket: Socket) => void {
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    const reason = reasonOfClientError(error.code);
    count(reason);
    endWithAnswer(socket, reason);
  };
}

/** Writes an answer to the socket without waiting for its request, and ends it. */
export function endWithAnswer(socket: Socket, reason: AnswerReason): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = answerStatus[reason];
  const body = answerBody(status);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

function reasonOfClientError(code: string | undefined): AnswerReason {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'too-slow';
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers-too-large';
  return 'malformed';
}
