import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy on loopback that cuts connections, or carries nothing over them. */
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
  /** Keeps all connections open, takes new ones, and carries nothing, until it is called with false. */
  deafen(deaf: boolean): void;
  close(): Promise<void>;
}

/** A TCP proxy on loopback before several targets, as a load balancer is. */
export interface Balancer {
  readonly address: string;
  /** Connections that each target took. */
  readonly taken: ReadonlyMap<string, number>;
  add(target: string): void;
  close(): Promise<void>;
}

/** Passes each connection on to the next target in turn that takes it. */
export async function startBalancer(): Promise<Balancer> {
  const taken = new Map<string, number>();
  const open = new Set<Socket>();
  let turn = 0;
  const pass = (near: Socket, tries: number): void => {
    const targets = [...taken.keys()];
    const target = targets[turn++ % targets.length];
    if (target === undefined || tries === 0) return void near.destroy();
    const { hostname, port } = new URL(`tcp://${target}`);
    const far = connect(Number(port), hostname);
    const refused = () => pass(near, tries - 1);
    far.once('error', refused).once('connect', () => {
      far.off('error', refused);
      taken.set(target, (taken.get(target) ?? 0) + 1);
      const end = () => {
        open.delete(near);
        near.destroy();
        far.destroy();
      };
      for (const socket of [near, far]) socket.on('error', end).on('close', end);
      near.pipe(far).pipe(near);
    });
  };
  const server = createServer((near) => {
    open.add(near);
    near.on('error', () => near.destroy());
    pass(near, taken.size);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    add: (target) => void taken.set(target, 0),
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * Forwards bytes to `target` (host:port) until `cutWhen` says otherwise. `busy` is called with 1 when
 * a GET request begins, with -1 when its answer does or its connection ends.
 */
export async function startProxy(
  target: string,
  busy: (change: 1 | -1) => void = () => {},
): Promise<CuttingProxy> {
  let { hostname, port } = new URL(`tcp://${target}`);
  const open = new Set<Socket>();
  let cuts = 0;
  let openMax = 0;
  const gets = { count: 0, firstAt: 0, lastAt: 0 };
  let decide = () => false;
  let deaf = false;
  /** Makes the two sides of each connection carry nothing, or carry on. */
  const listen = new Map<Socket, () => void>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    open.add(near);
    listen.set(near, () => {
      if (deaf) near.unpipe(far).pause();
      else near.pipe(far);
      if (deaf) far.pause();
      else far.resume();
    });
    openMax = Math.max(openMax, open.size);
    let asking = false;
    const ask = (begins: boolean) => {
      if (asking !== begins) busy(begins ? 1 : -1);
      asking = begins;
    };
    const end = () => {
      ask(false);
      open.delete(near);
      listen.delete(near);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.on('error', end).on('close', end);
    near.on('data', (piece) => {
      if (piece.toString('latin1', 0, 4) !== 'GET ') return;
      gets.lastAt = performance.now();
      if (gets.count === 0) gets.firstAt = gets.lastAt;
      gets.count += 1;
      ask(true);
    });
    far.on('data', (piece) => {
      ask(false);
      if (!decide()) return near.write(piece);
      cuts += 1;
      return end();
    });
    listen.get(near)?.();
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
    deafen: (now) => {
      deaf = now;
      for (const apply of listen.values()) apply();
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
