import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Counted from 1, over all requests of the server. */
  readonly number: number;
}

/** How the server answers one request. */
export type Reply =
  | { readonly json: unknown; readonly status?: number; readonly headers?: Record<string, string> }
  | { readonly body: string | Buffer; readonly status?: number; readonly headers?: Record<string, string> }
  /** Announces more bytes than it sends, and hangs up. */
  | { readonly cut: string; readonly status?: number; readonly headers?: Record<string, string> }
  /** Closes the connection without an answer. */
  | 'hang up'
  /** Never answers. */
  | 'silence'
  /** Sends the head and the start of a body, and nothing more. */
  | 'trickle'
  /** Sends a body for as long as the client reads it. */
  | 'endless';

export type Script = (asked: Asked) => Reply | Promise<Reply>;

/** A real HTTP server that answers by a script, in place of the service and its possible faults. */
export class ScriptedServer {
  readonly asked: Asked[] = [];
  /** The most requests that were unanswered at one moment. */
  inFlightMax = 0;
  #inFlight = 0;
  readonly #script: Script;
  readonly #server: Server;

  private constructor(script: Script) {
    this.#script = script;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(script: Script): Promise<ScriptedServer> {
    const server = new ScriptedServer(script);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v2.2`;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://service');
    const number = this.asked.length + 1;
    const asked = { path: url.pathname, query: url.searchParams, headers: request.headers, number };
    this.asked.push(asked);
    this.#inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.#inFlight);
    response.on('close', () => {
      this.#inFlight -= 1;
    });
    perform(await this.#script(asked), response);
  }
}

function perform(reply: Reply, response: ServerResponse): void {
  if (reply === 'silence') return;
  if (reply === 'hang up') {
    response.destroy();
    return;
  }
  if (reply === 'trickle') {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"documents": [');
    return;
  }
  if (reply === 'endless') {
    const piece = Buffer.alloc(64 * 1024, ' ');
    const send = (): void => {
      while (!response.destroyed && response.write(piece));
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.on('drain', send);
    send();
    return;
  }
  if ('cut' in reply) {
    const length = { 'content-length': Buffer.byteLength(reply.cut) + 1000 };
    response.writeHead(reply.status ?? 200, { ...length, ...reply.headers });
    // Sends the bytes before the connection is closed.
    response.write(reply.cut, () => response.destroy());
    return;
  }
  const body = 'json' in reply ? JSON.stringify(reply.json) : reply.body;
  response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers });
  response.end(body);
}
