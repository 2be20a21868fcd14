import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** Below the range of local ports for outgoing connections, none of which can take one of these by chance. */
const lowestPort = 20_000;
const highestPort = 29_999;

/** Ports by purpose. The data folder keeps them, so that addresses stay the same. */
export type Ports = Record<'postgres' | 'temporal' | 'temporalUi', number>;

/** Chooses the ports of a data folder: the previous ports if they are still free, and free ports otherwise. */
export async function choosePorts(dir: string): Promise<Ports> {
  const file = join(dir, 'ports.json');
  const previous = readPorts(file);
  const ports: Partial<Ports> = {};
  for (const purpose of ['postgres', 'temporal', 'temporalUi'] as const) {
    let port = previous[purpose] ?? randomPort();
    while (Object.values(ports).includes(port) || !(await isFree(port))) port = randomPort();
    ports[purpose] = port;
  }
  writeFileSync(file, `${JSON.stringify(ports, null, 2)}\n`, { mode: 0o600 });
  return ports as Ports;
}

/** At random, so that two stacks that start at the same moment choose different ports. */
const randomPort = (): number => lowestPort + Math.floor(Math.random() * (highestPort - lowestPort + 1));

/** Whether a server could listen on this port of the loopback address now. */
export async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function readPorts(file: string): Partial<Ports> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Partial<Ports>;
  } catch {
    return {};
  }
}
