import { connect, createServer, type Socket } from 'node:net';

/** A way to Postgres on which it can fall silent, as a server does that hangs: connections stay open. */
export interface Deafened {
  /** The address of the database through it. */
  readonly url: string;
  deafen(): void;
  hear(): void;
  stop(): Promise<void>;
}

export async function startDeafened(databaseUrl: string): Promise<Deafened> {
  const target = new URL(databaseUrl);
  const pairs: (readonly [Socket, Socket])[] = [];
  let deaf = false;
  const join = ([near, far]: readonly [Socket, Socket]): void => {
    near.pipe(far).pipe(near);
  };
  const server = createServer((near) => {
    const pair = [near, connect(Number(target.port), target.hostname)] as const;
    for (const socket of pair) socket.on('error', () => {});
    pairs.push(pair);
    if (!deaf) join(pair);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    deafen: () => {
      deaf = true;
      for (const socket of pairs.flat()) socket.unpipe().pause();
    },
    hear: () => {
      deaf = false;
      for (const pair of pairs) join(pair);
    },
    stop: async () => {
      for (const socket of pairs.flat()) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
