import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { setEndpointState } from './endpoints.ts';
import { type Outcome, recordOutcomes } from './outcome.ts';

export interface Ledger {
  /** Resolves once the outcome is recorded. */
  add(outcome: Outcome): Promise<void>;
  /** Outcomes that are not recorded yet. */
  open(): number;
  /** Resolves once all outcomes are recorded, or when recording them failed once more. */
  close(): Promise<void>;
}

export interface LedgerDependencies {
  readonly pool: Pool;
  readonly report: (error: Error) => void;
  /** Called after endpoints were disabled because every attempt failed for too long (service.md 3.2). */
  readonly disabled: (endpointIds: readonly string[]) => void;
}

interface Entry {
  readonly outcome: Outcome;
  readonly written: () => void;
}

/** Wait after a failure of the database, before the next attempt. */
const retryMs = 500;

/** Records outcomes together. Outcomes that arrive while a transaction runs wait for the next transaction. */
export function createLedger({ pool, report, disabled }: LedgerDependencies): Ledger {
  let waiting: Entry[] = [];
  let underway: Entry[] = [];
  let writing: Promise<void> | undefined;
  let closing = false;

  const disable = async (ids: readonly string[]) => {
    await inTransaction(pool, async (client) => {
      for (const id of ids) await setEndpointState(client, id, 'disabled');
    });
    disabled(ids);
  };

  const writeAll = async () => {
    while (waiting.length > 0) {
      underway = waiting;
      waiting = [];
      try {
        const ids = await recordOutcomes(
          pool,
          underway.map((entry) => entry.outcome),
        );
        // Outcomes must not be recorded twice, so an error is only reported. Disabling is tried again later.
        if (ids.length > 0) await disable(ids).catch(report);
        for (const { written } of underway) written();
      } catch (error) {
        report(error instanceof Error ? error : new Error(String(error)));
        if (closing) break;
        waiting = [...underway, ...waiting];
        await wait(retryMs);
      }
      underway = [];
    }
    writing = undefined;
  };

  return {
    add(outcome) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ outcome, written: resolve });
      writing ??= writeAll();
      return promise;
    },
    open: () => waiting.length + underway.length,
    async close() {
      closing = true;
      await writing;
      // Deliveries that were not recorded are still in flight, so the next start sends them again.
      for (const { written } of [...underway, ...waiting]) written();
    },
  };
}
