import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { createRandom } from '../generate/random.ts';
import type { FaultRegistry, SetFault } from './registry.ts';
import type { Reader, Snapshot } from './snapshot.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The faults that strike this request. */
    faults: readonly SetFault[];
    /** Where records are read for this request: the pool, or the snapshot of a stale read. */
    reader: Reader;
  }
}

export interface FaultDependencies {
  readonly pool: Pool;
  readonly registry: FaultRegistry;
  readonly snapshots: ReadonlyMap<string, Snapshot>;
}

/** Applies the active faults to the requests of an API version. `prefix` is not part of their paths. */
export function strikeWithFaults(
  app: FastifyInstance,
  prefix: string,
  dependencies: FaultDependencies,
): void {
  const { pool, registry, snapshots } = dependencies;
  app.addHook('onRequest', async (request, reply) => {
    request.reader = pool;
    request.faults = registry.strike(request.url.slice(prefix.length));
    for (const { id, fault, struck } of request.faults) {
      if (fault.kind === 'latency') {
        const [least, most] = fault.ms;
        await wait(least + createRandom('latency', fault.seed, struck).int(0, Math.max(0, most - least)));
      }
      if (fault.kind === 'stale') request.reader = snapshots.get(id) ?? pool;
    }
    return refuse(request, reply);
  });
  app.addHook('onSend', async (request, reply, payload) => spoil(request, reply, payload));
}

function refuse(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  for (const { fault } of request.faults) {
    if (fault.kind === 'reset') {
      reply.hijack();
      request.raw.socket.destroy();
      return reply;
    }
    if (fault.kind !== 'status') continue;
    if (fault.retryAfter !== undefined) reply.header('retry-after', String(fault.retryAfter));
    return reply.status(fault.status).send({ detail: `A fault of the sandbox: status ${fault.status}.` });
  }
  return undefined;
}

/** Share of a body that is sent before a cut. */
const cutShare = 0.6;

function spoil(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
  // A request with a foreign Host is refused before its faults are set.
  const kinds = new Set((request.faults ?? []).map(({ fault }) => fault.kind));
  if (!kinds.has('garbage') && !kinds.has('cut')) return payload;
  const whole = Buffer.isBuffer(payload) ? payload : Buffer.from(String(payload));
  const half = whole.subarray(0, Math.floor(whole.length * cutShare));
  if (kinds.has('garbage')) return Buffer.concat([half, Buffer.from('<html>Bad Gateway</html>')]);
  reply.header('content-length', whole.length);
  return Readable.from(brokenAfter(half));
}

async function* brokenAfter(first: Buffer): AsyncGenerator<Buffer> {
  yield first;
  throw new Error('a fault of the sandbox cut the answer');
}

/** How many records at the start of a list `itemInserted` and `itemRemoved` hide on this page. */
export function hiddenRecords(faults: readonly SetFault[], page: number): number {
  const hides = ({ fault }: SetFault) =>
    (fault.kind === 'itemInserted' && page === 1) || (fault.kind === 'itemRemoved' && page > 1);
  return faults.some(hides) ? 1 : 0;
}
