import { once } from 'node:events';
import { createServer } from 'node:net';

/** Finds a free port, for a server whose address is needed before it listens. */
export async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  await once(server.close(), 'close');
  return port;
}
