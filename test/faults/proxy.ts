import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { RigOptions, Way } from './rig.ts';

/** A TCP proxy on loopback that can cut connections, or keep them open and transfer nothing. */
export interface CuttingProxy {
  /** The address to connect to instead of the target, in the same form. */
  readonly address: string;
  /** The number of connections that were cut, and the maximum that were open at the same time. */
  readonly cuts: number;
  readonly openMax: number;
  /** The number of GET requests that passed. */
  readonly gets: number;
  /** Decides for each chunk from the target whether to discard it and cut both sides. */
  cutWhen(decide: () => boolean): void;
  /** Cuts all connections and forwards new ones to another target. */
  moveTo(target: string): void;
  /** Keeps all connections open, accepts new ones and transfers nothing, until it is called with false. */
  deafen(deaf: boolean): void;
  close(): Promise<void>;
}

/** A TCP proxy on loopback in front of several targets, like a load balancer. */
export interface Balancer {
  /** The number of connections that each target accepted, by its host and port. */
  readonly taken: ReadonlyMap<string, number>;
  /** Adds a target, which is a URL or host:port. Returns the address to connect to instead. */
  add(target: string): string;
  close(): Promise<void>;
}

/** Open connections: the client's socket, and the target's, or undefined while that is sought. */
type Open = Map<Socket, Socket | undefined>;

/** Listens on loopback, and passes each connection to `take`. */
async function listen(
  open: Open,
  take: (near: Socket) => void,
): Promise<{ address: string; close(): Promise<void> }> {
  const server = createServer((near) => {
    open.set(near, undefined);
    near.on('error', () => near.destroy()).on('close', () => open.delete(near));
    take(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      cutAll(open);
      server.close();
      await once(server, 'close');
    },
  };
}

function cutAll(open: Open): void {
  for (const near of open.keys()) near.destroy();
}

/** Connects both sides, so that the end of one side ends the other. Returns a function that ends both. */
function join(open: Open, near: Socket, far: Socket): () => void {
  open.set(near, far);
  const end = () => {
    open.delete(near);
    near.destroy();
    far.destroy();
  };
  for (const socket of [near, far]) socket.on('error', end).on('close', end);
  return end;
}

/** Passes each connection on to the next target in turn that accepts it. */
export async function startBalancer(): Promise<Balancer> {
  const taken = new Map<string, number>();
  const open: Open = new Map();
  let turn = 0;
  const pass = (near: Socket, tries: number): void => {
    const targets = [...taken.keys()];
    const target = targets[turn++ % targets.length];
    if (target === undefined || tries === 0) return void near.destroy();
    const { hostname, port } = urlOf(target);
    const far = connect(Number(port), hostname);
    const refused = () => pass(near, tries - 1);
    far.once('error', refused).once('connect', () => {
      far.off('error', refused);
      taken.set(target, (taken.get(target) ?? 0) + 1);
      join(open, near, far);
      near.pipe(far).pipe(near);
    });
  };
  const { address, close } = await listen(open, (near) => pass(near, taken.size));
  return {
    taken,
    add: (target) => {
      taken.set(urlOf(target).host, 0);
      return through(address, target);
    },
    close,
  };
}

/**
 * Forwards bytes to `target`, which is a URL or host:port, until `cutWhen` says otherwise. `busy` is called
 * with 1 when a GET request begins, and with -1 when its answer begins or its connection ends.
 */
export async function startProxy(
  target: string,
  busy: (change: 1 | -1) => void = () => {},
): Promise<CuttingProxy> {
  let { hostname, port } = urlOf(target);
  const open: Open = new Map();
  let cuts = 0;
  let openMax = 0;
  let gets = 0;
  let decide = () => false;
  let deaf = false;
  /** Makes the two sides transfer nothing, or transfer again. */
  const carry = (near: Socket, far: Socket) => {
    if (deaf) near.unpipe(far).pause();
    else near.pipe(far);
    if (deaf) far.pause();
    else far.resume();
  };
  const { address, close } = await listen(open, (near) => {
    const far = connect(Number(port), hostname);
    const end = join(open, near, far);
    openMax = Math.max(openMax, open.size);
    let asking = false;
    const ask = (begins: boolean) => {
      if (asking !== begins) busy(begins ? 1 : -1);
      asking = begins;
    };
    near.on('close', () => ask(false));
    near.on('data', (piece) => {
      if (piece.toString('latin1', 0, 4) !== 'GET ') return;
      gets += 1;
      ask(true);
    });
    far.on('data', (piece) => {
      ask(false);
      if (!decide()) return near.write(piece);
      cuts += 1;
      return end();
    });
    carry(near, far);
  });
  return {
    address: through(address, target),
    get cuts() {
      return cuts;
    },
    get openMax() {
      return openMax;
    },
    get gets() {
      return gets;
    },
    cutWhen: (asked) => {
      decide = asked;
    },
    moveTo: (other) => {
      ({ hostname, port } = urlOf(other));
      cutAll(open);
    },
    deafen: (now) => {
      deaf = now;
      for (const [near, far] of open) if (far !== undefined) carry(near, far);
    },
    close,
  };
}

/** The proxies on some ways of a rig. */
export type Proxies = Readonly<Record<Way, CuttingProxy>>;

/** Runs work on a rig with proxies on these ways, and closes them. */
export const withProxies =
  (...ways: readonly Way[]) =>
  async <T>(work: (more: RigOptions, made: Proxies) => Promise<T>): Promise<T> => {
    const made: Partial<Record<Way, CuttingProxy>> = {};
    const through = async (way: Way, target: string): Promise<string> => {
      const proxy = await startProxy(target);
      made[way] = proxy;
      return proxy.address;
    };
    const between = Object.fromEntries(ways.map((way) => [way, (target: string) => through(way, target)]));
    try {
      return await work({ between }, made as Proxies);
    } finally {
      await Promise.all(Object.values(made).map((proxy) => proxy.close()));
    }
  };

const isUrl = (target: string): boolean => target.includes('://');

const urlOf = (target: string): URL => new URL(isUrl(target) ? target : `tcp://${target}`);

/** Returns the target, which is a URL or host:port, with the given host and port instead of its own. */
function through(address: string, target: string): string {
  if (!isUrl(target)) return address;
  const url = new URL(target);
  url.host = address;
  return url.href;
}
