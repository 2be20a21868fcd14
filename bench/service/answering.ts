/** The process of a receiver that only answers: it reads a delivery to its end, counts it and answers 204. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '../process/serve.ts';

/** How long the expected deliveries may take. */
const arrivesWithinMs = 120_000;

export interface Delivery {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}
export interface Arrived {
  /** When the last expected delivery arrived, in Unix milliseconds. */
  readonly lastAt: number;
  /** The last delivery, unchanged. */
  readonly last: Delivery;
}

export type AnsweringCalls = ReturnType<typeof createAnswering>;

function createAnswering() {
  let missing = 0;
  let arrived = Promise.withResolvers<Arrived>();

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      response.writeHead(204).end();
      missing -= 1;
      if (missing !== 0) return;
      const body = Buffer.concat(chunks).toString('utf8');
      arrived.resolve({ lastAt: Date.now(), last: { headers: request.headers, body } });
    });
  });

  return {
    listen: async (_: undefined): Promise<number> => {
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      return (server.address() as AddressInfo).port;
    },
    /** Starts to count. */
    expect: (deliveries: number): void => {
      missing = deliveries;
      arrived = Promise.withResolvers();
    },
    /** Answers once all expected deliveries have arrived. */
    arrived: async (_: undefined): Promise<Arrived> => {
      const timer = setTimeout(
        () => arrived.reject(new Error(`${missing} deliveries are missing`)),
        arrivesWithinMs,
      );
      return await arrived.promise.finally(() => clearTimeout(timer));
    },
  };
}

serve(createAnswering());
