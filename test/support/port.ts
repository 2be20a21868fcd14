import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A port of 127.0.0.1 that was free a moment ago, for a server that has to come back under the same address. It is below
 * those that a system gives to whoever asks for any (32768 and higher; 49152 on some), and those of the embedded stack.
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
