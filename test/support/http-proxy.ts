import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** A request to a proxy: `CONNECT service.example:443`, or `GET http://service.example/ping`. */
export interface ProxyAsked {
  readonly line: string;
  /** The login that came with it: `user:password`. */
  readonly login: string | undefined;
}

/** An HTTP proxy like the proxies of companies. Only the proxy can resolve the names of the hosts. */
export interface HttpProxy {
  readonly host: string;
  readonly asked: ProxyAsked[];
  /** How it answers a request for a tunnel: with a status, by hanging up, or not at all. */
  tunnels: number | 'hang up' | 'silence';
  stop(): Promise<void>;
}

/** @param portOf for each host that the proxy knows, the port of its server on this machine */
export async function startHttpProxy(portOf: Readonly<Record<string, number>>): Promise<HttpProxy> {
  const sockets = new Set<Socket>();
  const note = ({ method, url, headers }: IncomingMessage): void => {
    const [, login] = /^Basic (.*)$/.exec(headers['proxy-authorization'] ?? '') ?? [];
    proxy.asked.push({ line: `${method} ${url}`, login: login && Buffer.from(login, 'base64').toString() });
  };
  const server = createServer((asked, response) => {
    note(asked);
    const { hostname, pathname, search } = new URL(asked.url ?? '');
    const { method = 'GET', headers } = asked;
    const options = { host: '127.0.0.1', port: portOf[hostname], path: pathname + search, method, headers };
    const passed = request(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.writeHead(502).end());
    asked.pipe(passed);
  });
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', (asked: IncomingMessage, socket: Socket) => {
    note(asked);
    socket.on('error', () => {});
    const { tunnels } = proxy;
    if (tunnels === 'silence') return;
    if (tunnels === 'hang up') return void socket.destroy();
    if (tunnels !== 200) return void socket.end(`HTTP/1.1 ${tunnels} No\r\ncontent-length: 0\r\n\r\n`);
    const [host = ''] = (asked.url ?? '').split(':');
    const target = connect(portOf[host] ?? 0, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connected\r\n\r\n');
      socket.pipe(target).pipe(socket);
    });
    sockets.add(target);
    target.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy: HttpProxy = {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    tunnels: 200,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return proxy;
}
