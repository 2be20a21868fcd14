import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { type Outcome, recordOutcomes } from './outcome.ts';

export interface Ledger {
  add(outcome: Outcome): void;
  /** Outcomes not written down yet. */
  open(): number;
  /** Resolves when all is written, or has failed to be once more. */
  close(): Promise<void>;
}

/** After a failure of the database, before the next try. */
const retryMs = 500;

/** Outcomes are written together: while one transaction runs, those that end meanwhile wait for the next. */
export function createLedger(pool: Pool, report: (error: Error) => void, written: () => void): Ledger {
  let waiting: Outcome[] = [];
  let underway: Outcome[] = [];
  let writing: Promise<void> | undefined;
  let closing = false;

  const writeAll = async () => {
    while (waiting.length > 0) {
      underway = waiting;
      waiting = [];
      try {
        await recordOutcomes(pool, underway);
        if (underway.some((outcome) => outcome.state === 'waiting')) written();
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
      waiting.push(outcome);
      writing ??= writeAll();
    },
    open: () => waiting.length + underway.length,
    async close() {
      closing = true;
      await writing;
    },
  };
}
