import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { drizzle } from 'drizzle-orm/node-postgres';
import type pg from 'pg';
import type { Dispatcher } from 'undici';
import type { Activities } from '../../activities/create-activities.ts';
import type { DeletesCap } from '../../contract/deletes-cap.ts';
import { defaultEndpoints, type EndpointCatalogue } from '../../contract/endpoints.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import type { FieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { createServiceClient, type ServiceClient } from '../../service/client.ts';
import { timeoutMs } from '../service/setup.ts';
import { VirtualClock } from '../service/virtual-clock.ts';
import { activitiesAlone } from '../support/activities.ts';
import { apiKey, type Service } from './service.ts';

/** What a worker loses: the answer to a request, or to a transaction that was committed. */
export type Loss = 'request' | 'commit';

/** How far a worker goes: so many turns, or until the next answer of a path that contains this text is on its way. */
export type Turns = number | string;

/** Enough for anything. */
export const toItsEnd = 1_000_000;

/** What all workers of a history have. */
export interface Deployment {
  readonly warehouse: Warehouse;
  readonly service: Service;
  readonly endpoints: EndpointCatalogue;
  readonly deletesCap: DeletesCap;
  /** Begins the first backfill of a company. */
  readonly backfillFirst: (companyId: string) => Promise<void>;
}

/** The sources that a deployment can have for usage: its own endpoints, or the records of documents. */
export const usageSources = {
  endpoints: defaultEndpoints,
  records: { ...defaultEndpoints, usageData: null, documentUsage: null },
} as const;
export type UsageSource = keyof typeof usageSources;

/** The process of a worker has died. */
export class Died extends Error {}

/** The fields of records are not part of the model. */
const noCatalogue: FieldCatalogue = { note: async () => {} };

/**
 * A process that runs one activity after the other. Before each request, each answer, each transaction and
 * each statement outside of one, it waits for its turn, so that a history decides what happens meanwhile. It
 * holds no lock while it waits.
 */
export class Worker {
  readonly activities: Activities;
  readonly #deployment: Deployment;
  /** How many turns are left before it waits. */
  #turns = 0;
  #until: string | undefined;
  #dead = false;
  #loses: Loss | undefined;
  #waiting: { readonly go: () => void; readonly die: (error: Error) => void }[] = [];
  #busy = 0;
  #changed = (): void => {};
  /** The activity that it runs. */
  #work: Promise<unknown> = Promise.resolve();

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
    const { warehouse, endpoints, deletesCap, backfillFirst } = deployment;
    const pool = this.#poolOf(warehouse.pool);
    const own: Warehouse = { ...warehouse, pool, db: drizzle(pool), rowsAdded: new Map() };
    this.activities = activitiesAlone(own, noCatalogue, {
      service: clientOf({ request: (asked) => this.#request(asked) }, endpoints),
      apiVersion: 'v2.2',
      deletesCap,
      backfillFirst: async (companyId) => {
        await this.#turn();
        await backfillFirst(companyId);
      },
    });
  }

  /** Gives it turns, and waits until it waits for another one, or `work` is done: its activity or more. */
  async move(turns: Turns, work = this.#work): Promise<'waits' | 'done'> {
    this.#turns = typeof turns === 'string' ? toItsEnd : turns;
    this.#until = typeof turns === 'string' ? turns : undefined;
    for (const { go } of this.#waiting.splice(0, this.#turns)) {
      this.#turns -= 1;
      go();
    }
    let done = false;
    const end = (): void => {
      done = true;
      this.#changed();
    };
    work.then(end, end);
    for (;;) {
      // Whatever follows from the last answer happens first.
      for (let rounds = 0; rounds < 3; rounds++) await new Promise(setImmediate);
      if (done) return 'done';
      if (this.#busy === 0 && this.#waiting.length > 0) return 'waits';
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
        // Some waits are timers, which announce nothing.
        setTimeout(resolve, 20);
      });
    }
  }

  /** Lets the next of these answers get lost. */
  lose(what: Loss): void {
    this.#loses = what;
  }

  /** Ends it. What Postgres was told is done. */
  die(): void {
    this.#dead = true;
    for (const { die } of this.#waiting.splice(0)) die(new Died());
  }

  /** Runs an activity as Temporal's SDK does. `noted` is given each heartbeat. */
  async run<I, O>(
    activity: (input: I) => Promise<O>,
    input: I,
    how: {
      readonly attempt: number;
      readonly isLocal: boolean;
      readonly heartbeat: unknown;
      readonly noted: (details: unknown) => void;
    },
  ): Promise<O> {
    const { attempt, isLocal, heartbeat, noted } = how;
    const info = { attempt, isLocal, ...(heartbeat === undefined ? {} : { heartbeatDetails: heartbeat }) };
    const environment = new MockActivityEnvironment(info, { logger: new DefaultLogger('ERROR') });
    environment.on('heartbeat', noted);
    const work: Promise<O> = environment.run(activity, input);
    this.#work = work;
    return await work;
  }

  async #turn(): Promise<void> {
    if (this.#dead) throw new Died();
    if (this.#turns > 0) {
      this.#turns -= 1;
      return;
    }
    await new Promise<void>((go, die) => {
      this.#waiting.push({ go, die });
      this.#changed();
    });
  }

  /** Does something that takes a while. */
  async #do<T>(work: () => Promise<T>): Promise<T> {
    this.#busy += 1;
    try {
      return await work();
    } finally {
      this.#busy -= 1;
      this.#changed();
    }
  }

  #loseAnswer(what: Loss): void {
    if (this.#loses !== what) return;
    this.#loses = undefined;
    throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
  }

  async #request(asked: Parameters<Service['request']>[0]) {
    await this.#turn();
    const answer = await this.#do(() => this.#deployment.service.request(asked));
    if (this.#until !== undefined && asked.path.includes(this.#until)) this.#turns = 0;
    await this.#turn();
    this.#loseAnswer('request');
    return answer;
  }

  /** The shared pool, as the worker uses it. */
  #poolOf(shared: pg.Pool): pg.Pool {
    const query = async (...asked: unknown[]): Promise<unknown> => {
      await this.#turn();
      return await this.#do(() => (shared.query as (...of: unknown[]) => Promise<unknown>)(...asked));
    };
    const connect = async (): Promise<pg.PoolClient> => {
      await this.#turn();
      this.#busy += 1;
      const client = await shared.connect();
      return this.#clientOf(client);
    };
    return Object.create(shared, { query: { value: query }, connect: { value: connect } });
  }

  #clientOf(client: pg.PoolClient): pg.PoolClient {
    const query = (...asked: [{ text?: string }, ...unknown[]]): unknown => {
      const answer = (client.query as (...of: unknown[]) => unknown)(...asked);
      if (asked[0]?.text !== 'commit') return answer;
      return (answer as Promise<unknown>).then((committed) => {
        this.#loseAnswer('commit');
        return committed;
      });
    };
    const release = (destroy?: boolean): void => {
      this.#busy -= 1;
      client.release(destroy);
      this.#changed();
    };
    return new Proxy(client, {
      get: (_, name) => {
        if (name === 'query') return query;
        if (name === 'release') return release;
        const value: unknown = Reflect.get(client, name);
        return typeof value === 'function' ? value.bind(client) : value;
      },
    });
  }
}

/** Makes a client of the service, whose waits take no time. */
export const clientOf = (
  { request }: Pick<Service, 'request'>,
  endpoints: EndpointCatalogue,
): ServiceClient =>
  createServiceClient({
    baseUrl: 'http://sandbox/v2.2',
    apiKey,
    endpoints,
    timeoutMs,
    clock: new VirtualClock({ skipBelowMs: timeoutMs }),
    random: () => 0.5,
    log: { debug: () => {}, warn: () => {} },
    dispatcher: { request } as unknown as Dispatcher,
  });
