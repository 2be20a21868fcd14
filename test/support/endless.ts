import type { ServerResponse } from 'node:http';

const piece = Buffer.alloc(64 * 1024, 'x');

/** Sends an answer that does not end before its reader closes the connection. */
export function endless(response: ServerResponse, status: number): void {
  response.writeHead(status);
  const send = (): void => {
    if (response.destroyed) return;
    if (response.write(piece)) setImmediate(send);
    else response.once('drain', send);
  };
  send();
}
