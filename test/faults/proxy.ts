import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy on loopback that cuts connections. */
export interface CuttingProxy {
  /** Host and port to connect to instead. */
  readonly address: string;
  /** Connections that were cut, and the most that were open at once. */
  readonly cuts: number;
  readonly openMax: number;
  /** GET requests that passed, and the seconds from the first to the last. */
  readonly gets: { readonly count: number; readonly seconds: number };
  /** Decides for each chunk from the target whether to discard it and cut both sides. */
  cutWhen(decide: () => boolean): void;
  /** Cuts all connections and forwards new ones to another target. */
  moveTo(target: string): void;
  close(): Promise<void>;
}

/** Forwards bytes to `target` (host:port) until `cutWhen` says otherwise. */
export async function startProxy(target: string): Promise<CuttingProxy> {
  let { hostname, port } = new URL(`tcp://${target}`);
  const open = new Set<Socket>();
  let cuts = 0;
  let openMax = 0;
  const gets = { count: 0, firstAt: 0, lastAt: 0 };
  let decide = () => false;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    open.add(near);
    openMax = Math.max(openMax, open.size);
    const end = () => {
      open.delete(near);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.on('error', end).on('close', end);
    near.pipe(far);
    near.on('data', (piece) => {
      if (piece.toString('latin1', 0, 4) !== 'GET ') return;
      gets.lastAt = performance.now();
      if (gets.count === 0) gets.firstAt = gets.lastAt;
      gets.count += 1;
    });
    far.on('data', (piece) => {
      if (!decide()) return near.write(piece);
      cuts += 1;
      return end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    get openMax() {
      return openMax;
    },
    get gets() {
      return { count: gets.count, seconds: (gets.lastAt - gets.firstAt) / 1_000 };
    },
    cutWhen: (asked) => {
      decide = asked;
    },
    moveTo: (other) => {
      ({ hostname, port } = new URL(`tcp://${other}`));
      for (const socket of open) socket.destroy();
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
