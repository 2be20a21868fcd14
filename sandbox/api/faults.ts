import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import pg from 'pg';
import { z } from 'zod';
import { createRandom, type Random } from '../generate/random.ts';

const common = {
  /** The start of the path after the version, such as `/document/company`; by default every path. */
  path: z.string().startsWith('/').optional(),
  probability: z.number().min(0).max(1).default(1),
  /** The maximum number of requests that the fault strikes. */
  times: z.int().min(1).optional(),
  /** How many real seconds the fault lasts. */
  seconds: z.number().min(0).optional(),
  seed: z.int().default(1),
};

/** A day, because a timer of more than 24 days would fire at once. */
const msMax = 86_400_000;

/** The body of `POST /sandbox/faults`: how the API misbehaves, where, and for how long. */
export const faultSchema = z.discriminatedUnion('kind', [
  /** The answer has this status. `retryAfter`, seconds or a date, is sent unchanged. */
  z.strictObject({
    kind: z.literal('status'),
    status: z.int().min(400).max(599),
    retryAfter: z.union([z.string().regex(/^[ -~]*$/, 'printable ASCII'), z.number()]).optional(),
    ...common,
  }),
  z.strictObject({
    kind: z.literal('latency'),
    ms: z.tuple([z.number().min(0).max(msMax), z.number().min(0).max(msMax)]),
    ...common,
  }),
  /** The connection breaks in the middle of the body. */
  z.strictObject({ kind: z.literal('cut'), ...common }),
  /** The answer has status 200 and the content type of JSON, but is not JSON. */
  z.strictObject({ kind: z.literal('garbage'), ...common }),
  /** The connection is closed without an answer. */
  z.strictObject({ kind: z.literal('reset'), ...common }),
  /** The first record is inserted after page 1 was read, so all records of later pages move by one. */
  z.strictObject({ kind: z.literal('itemInserted'), ...common }),
  /** The first record of a list is removed after page 1 was read, so a walk misses one record. */
  z.strictObject({ kind: z.literal('itemRemoved'), ...common }),
  /** Answers show the records as they were when the fault was set. */
  z.strictObject({ kind: z.literal('stale'), ...common }),
]);

type Fault = z.infer<typeof faultSchema>;

/** The active faults, with the snapshots of stale reads. */
export interface Faults {
  readonly registry: FaultRegistry;
  readonly snapshots: ReadonlyMap<string, Snapshot>;
  set(fault: Fault): Promise<SetFault>;
  close(): Promise<void>;
}

export function createFaults(
  databaseUrl: string,
  nowMs: () => number,
  report: (error: Error) => void,
): Faults {
  const snapshots = new Map<string, Snapshot>();
  const closing = new Set<Promise<void>>();
  const ended = (id: string) => {
    const snapshot = snapshots.get(id);
    if (snapshot === undefined) return;
    snapshots.delete(id);
    const closed = snapshot.close().catch(report);
    closing.add(closed);
    void closed.finally(() => closing.delete(closed));
  };
  const registry = createFaultRegistry(nowMs, ended);
  return {
    registry,
    snapshots,
    async set(fault) {
      const snapshot = fault.kind === 'stale' ? await takeSnapshot(databaseUrl, report) : undefined;
      const set = registry.set(fault);
      if (snapshot !== undefined) snapshots.set(set.id, snapshot);
      return set;
    },
    async close() {
      registry.clear();
      await Promise.all(closing);
    },
  };
}

interface SetFault {
  readonly id: string;
  readonly fault: Fault;
  /** Requests struck so far. */
  readonly struck: number;
}

/** Holds the active faults, and finds the faults that apply to a request. */
interface FaultRegistry {
  set(fault: Fault): SetFault;
  list(): SetFault[];
  /** Ends one fault, or all faults if no id is given. */
  clear(id?: string): void;
  /** Returns the faults that strike this path now, and counts the request for each of them. */
  strike(path: string): readonly SetFault[];
}

interface Held extends SetFault {
  struck: number;
  readonly until: number;
  readonly random: Random;
}

/** `now` is real time in milliseconds; `ended` is called with the id of every fault that is over. */
function createFaultRegistry(now: () => number, ended: (id: string) => void): FaultRegistry {
  const faults = new Map<string, Held>();
  let numbered = 0;

  const end = (id: string) => {
    if (faults.delete(id)) ended(id);
  };
  const dropSpent = () => {
    for (const [id, held] of faults) {
      if (now() >= held.until || held.struck >= (held.fault.times ?? Number.POSITIVE_INFINITY)) end(id);
    }
  };
  const strikes = (held: Held, path: string) =>
    path.startsWith(held.fault.path ?? '') && held.random.chance(held.fault.probability);

  return {
    set(fault) {
      const id = `fault_${++numbered}`;
      const until = fault.seconds === undefined ? Number.POSITIVE_INFINITY : now() + fault.seconds * 1000;
      const held: Held = { id, fault, struck: 0, until, random: createRandom('fault', fault.seed) };
      faults.set(id, held);
      return { id, fault, struck: 0 };
    },
    list() {
      dropSpent();
      return [...faults.values()].map(({ id, fault, struck }) => ({ id, fault, struck }));
    },
    clear(id) {
      for (const known of id === undefined ? [...faults.keys()] : [id]) end(known);
    },
    strike(path) {
      if (faults.size === 0) return [];
      dropSpent();
      const struck = [...faults.values()].filter((held) => strikes(held, path));
      for (const held of struck) held.struck++;
      return struck;
    },
  };
}

/** The part of a database that API reads need: the pool, or a fixed snapshot. */
export interface Reader {
  query<R extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<{ readonly rows: R[] }>;
}

interface Snapshot extends Reader {
  /** Resolves once the running reads have ended and the snapshot is released. */
  close(): Promise<void>;
}

/** Opens a transaction that keeps reading the database as it is at this moment. */
async function takeSnapshot(databaseUrl: string, report: (error: Error) => void): Promise<Snapshot> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', report);
  await client.connect();
  await client.query('begin isolation level repeatable read read only');
  await client.query('select from sandbox.organizations limit 1');
  let last: Promise<unknown> = Promise.resolve();
  return {
    query<R extends pg.QueryResultRow>(config: pg.QueryConfig) {
      const mine = last.then(() => client.query<R>(config));
      last = mine.catch(() => undefined);
      return mine;
    },
    async close() {
      await last;
      await client.end();
    },
  };
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

declare module 'fastify' {
  interface FastifyRequest {
    /** The faults that strike this request. */
    faults: readonly SetFault[];
    /** Where records are read for this request: the pool, or the snapshot of a stale read. */
    reader: Reader;
  }
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
