import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** What a proxy was asked: `CONNECT service.example:443`, or `GET http://service.example/ping`. */
export interface ProxyAsked {
  readonly line: string;
  /** The login that came with it: `user:password`. */
  readonly login: string | undefined;
}

/** An HTTP proxy as companies have it. Only the proxy knows the hosts. */
export interface HttpProxy {
  readonly host: string;
  readonly asked: ProxyAsked[];
  /** What it does with a tunnel: a status of its answer, or it hangs up, or keeps silent. */
  tunnels: number | 'hang up' | 'silence';
  stop(): Promise<void>;
}

/** @param portOf the ports on this machine of the hosts that it knows */
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
