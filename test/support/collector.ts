import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that the collector got. */
export interface Collected {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A real HTTP server that keeps the requests that it gets, in place of Slack, PagerDuty and the like. */
export interface Collector {
  readonly url: string;
  readonly got: Collected[];
  /** The bodies sent to a path, as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: bodies of four kinds, which tests look into
  bodies(path: string): any[];
  stop(): Promise<void>;
}

/** @param answer returns the status of the answer; the answer is sent when the promise resolves */
export async function startCollector(
  answer: (got: Collected) => number | Promise<number> = () => 200,
): Promise<Collector> {
  const got: Collected[] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { method = '', url = '', headers } = request;
    const one = { method, path: url, headers, body: Buffer.concat(pieces).toString() };
    got.push(one);
    // The answer contains NUL, as the answer of a broken server may.
    response.writeHead(await answer(one)).end(`secret ${url} said\0`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    got,
    bodies: (path) => got.filter((one) => one.path === path).map(({ body }) => JSON.parse(body)),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
