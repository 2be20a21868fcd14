import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Finds a free port of 127.0.0.1 for a server that comes back there, below the system's automatic ports (from
 * 32768 or 49152) and those of the embedded stack.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(11_000, 20_000);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return await new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
