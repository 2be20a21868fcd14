import { randomInt } from 'node:crypto';
import { isFree } from '../../embedded/start.ts';

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
