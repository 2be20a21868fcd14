import { readFile, rename, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { EmbeddedError } from './failure.ts';

/** Below the range of local ports for outgoing connections, so that nothing takes one of ours by chance. */
const lowestPort = 20_000;
const highestPort = 29_999;
const triesMax = 200;

/** Ports by purpose. The data folder keeps them, so that addresses stay the same. */
export type Ports = Record<'postgres' | 'temporal' | 'temporalUi', number>;

/** Chooses the ports of a data folder: the previous ones where they are still free, otherwise free ones. */
export async function choosePorts(dir: string): Promise<Ports> {
  const file = join(dir, 'ports.json');
  const remembered = await readPorts(file);
  const taken = new Set<number>();
  const choose = async (purpose: keyof Ports) => {
    const port = await choosePort(remembered[purpose], taken);
    taken.add(port);
    return port;
  };
  const ports: Ports = {
    postgres: await choose('postgres'),
    temporal: await choose('temporal'),
    temporalUi: await choose('temporalUi'),
  };
  if (Object.entries(ports).some(([purpose, port]) => remembered[purpose as keyof Ports] !== port)) {
    await writeFile(`${file}.new`, `${JSON.stringify(ports, null, 2)}\n`, { mode: 0o600 });
    await rename(`${file}.new`, file);
  }
  return ports;
}

/** Whether a server could listen on this port of the loopback address now. */
export async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

async function choosePort(remembered: number | undefined, taken: ReadonlySet<number>): Promise<number> {
  if (remembered !== undefined && !taken.has(remembered) && (await isFree(remembered))) return remembered;
  for (let tries = 0; tries < triesMax; tries++) {
    // At random, so that two stacks that start at the same moment choose different ports.
    const port = lowestPort + Math.floor(Math.random() * (highestPort - lowestPort + 1));
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  throw new EmbeddedError(`No free port on 127.0.0.1 between ${lowestPort} and ${highestPort}.`);
}

async function readPorts(file: string): Promise<Partial<Ports>> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Partial<Ports>;
  } catch {
    return {};
  }
}
