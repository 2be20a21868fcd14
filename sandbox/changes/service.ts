import type { Pool, PoolClient } from 'pg';
import type { ServiceClock } from '../clock.ts';
import { inTransaction } from '../database/transaction.ts';
import type { DeliveryDelay } from '../events/outbox.ts';
import { createRandom } from '../generate/random.ts';
import { toText } from '../timestamps.ts';
import { type Applied, applyChanges } from './apply.ts';
import { drawChanges, type RandomType } from './random.ts';
import type { Change } from './schema.ts';

export interface ChangeServiceDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly delays: () => readonly DeliveryDelay[];
  readonly newId: () => string;
  readonly newMessageId: () => string;
  /** Last day of the generated history. First intervals begin there, or 48 before now if that is earlier. */
  readonly until: string;
  /** Called after changes were committed. */
  readonly committed: (applied: Applied) => void;
}

export interface RandomAsked {
  readonly count: number;
  readonly seed: number;
  readonly types: readonly RandomType[] | undefined;
}

export interface RandomResult {
  readonly changes: number;
  readonly changesByType: Readonly<Record<string, number>>;
  readonly events: number;
  readonly byType: Readonly<Record<string, number>>;
}

/** The only way in which records change. Batches run in turn, so events are numbered in commit order. */
export interface ChangeService {
  apply(changes: readonly Change[]): Promise<Applied>;
  /** Draws and applies valid changes until there are `count`. */
  random(asked: RandomAsked): Promise<RandomResult>;
}

/** How many changes are drawn and written together. */
const randomBatch = 500;

export function createChangeService(dependencies: ChangeServiceDependencies): ChangeService {
  const { pool, clock, delays, newId, newMessageId, until, committed } = dependencies;
  const inTurn = createTurns();

  const applyIn = (client: PoolClient, changes: readonly Change[]) =>
    applyChanges(client, changes, { now: clock.now(), newId, newMessageId, delays: delays() });

  const run = async (work: (client: PoolClient) => Promise<Applied>): Promise<Applied> => {
    const applied = await inTurn(() => inTransaction(pool, work));
    committed(applied);
    return applied;
  };

  return {
    apply: (changes) => run((client) => applyIn(client, changes)),
    async random({ count, seed, types }) {
      const random = createRandom('random', seed);
      const changesByType: Record<string, number> = {};
      const byType: Record<string, number> = {};
      let changes = 0;
      let events = 0;
      while (changes < count) {
        const size = Math.min(randomBatch, count - changes);
        const applied = await run(async (client) =>
          applyIn(
            client,
            await drawChanges(client, random, size, types, { now: toText(clock.now()), until }),
          ),
        );
        if (applied.changes.length === 0) break;
        changes += applied.changes.length;
        events += applied.events.length;
        for (const { type } of applied.changes) changesByType[type] = (changesByType[type] ?? 0) + 1;
        for (const { type } of applied.events) byType[type] = (byType[type] ?? 0) + 1;
      }
      return { changes, changesByType, events, byType };
    },
  };
}

/** Runs pieces of work one after another, even if an earlier one failed. */
function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
