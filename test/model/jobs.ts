import { ApplicationFailure } from '@temporalio/common';
import type { Activities } from '../../activities/create-activities.ts';
import type { DeliveredEvent } from '../../contract/event.ts';
import { catchUpKinds, type RunKind } from '../../contract/names.ts';
import { type Deployment, Died, type Turns, Worker } from './worker.ts';

/** Runs an activity for a workflow, with Temporal's retries. */
export type RunActivity = <I, O>(
  activity: (of: Activities) => (input: I) => Promise<O>,
  input: I,
  /** Whether the first attempt is a local activity. */
  localFirst?: boolean,
) => Promise<O>;

/** What a workflow does: the same activities in the same order. */
export type Workflow = (run: RunActivity) => Promise<void>;

/** How often an activity is tried before its workflow goes on without it. */
const triesMax = 3;

/** A workflow under way, with the worker that runs its activities. */
export class Job {
  readonly #deployment: Deployment;
  readonly #work: Promise<void>;
  /** Whether the failure of an activity is retried for ever, as recording events is. */
  readonly #endless: boolean;
  /** Workers that Temporal believes to be dead. They may still go on. */
  readonly frozen: Worker[];
  #worker: Worker;
  #replaced = (_: Worker): void => {};

  constructor(deployment: Deployment, workflow: Workflow, frozen: Worker[], endless = false) {
    this.#deployment = deployment;
    this.#endless = endless;
    this.frozen = frozen;
    this.#worker = new Worker(deployment);
    this.#work = workflow((...work) => this.#run(...work));
    // A failure is thrown by the next move.
    this.#work.catch(() => {});
  }

  /** Moves it on. Returns whether it has ended. */
  async move(turns: Turns): Promise<boolean> {
    if ((await this.#worker.move(turns, this.#work)) === 'waits') return false;
    await this.#work;
    return true;
  }

  lose(what: 'request' | 'commit'): void {
    this.#worker.lose(what);
  }

  /** Ends its worker, or lets Temporal believe that it ended. Another worker tries the activity again. */
  crash(freeze: boolean): void {
    const before = this.#worker;
    this.#worker = new Worker(this.#deployment);
    this.#replaced(this.#worker);
    if (freeze) this.frozen.push(before);
    else before.die();
  }

  async #run<I, O>(
    of: (activities: Activities) => (input: I) => Promise<O>,
    input: I,
    localFirst = false,
  ): Promise<O> {
    let heartbeat: unknown;
    for (let attempt = 1; ; attempt++) {
      const worker = this.#worker;
      const replaced = new Promise<never>((_, reject) => {
        this.#replaced = () => reject(new Died());
      });
      replaced.catch(() => {});
      const noted = (details: unknown): void => {
        if (worker === this.#worker) heartbeat = details;
      };
      const isLocal = localFirst && attempt === 1;
      const work = worker.run(of(worker.activities), input, { attempt, isLocal, heartbeat, noted });
      try {
        return await Promise.race([work, replaced]);
      } catch (error) {
        work.catch(() => {});
        if (error instanceof Died) continue;
        const isFinal = error instanceof ApplicationFailure && error.nonRetryable;
        if (isFinal || (attempt >= triesMax && !this.#endless)) throw error;
      }
    }
  }
}

/** Like workflows/events.ts. */
export const applyEvents =
  (events: readonly DeliveredEvent[]): Workflow =>
  async (run) => {
    await run(({ recordGroup }) => recordGroup, { events }, true);
  };

/** Like one look of workflows/sweep.ts, with one lane. Temporal starts the next one a minute later. */
export const sweep = (): Workflow => async (run) => {
  try {
    const look = { limit: catchUpKinds.length * 10, except: [] };
    const { owners, probes } = await run(({ dueForSweep }) => dueForSweep, look);
    const { large } = await run(({ sweepOwners }) => sweepOwners, { owners });
    for (const owner of large) await run(({ sweepOwners }) => sweepOwners, { owners: [owner], walks: true });
    if (probes.length > 0) await run(({ probeGates }) => probeGates, { scopes: probes });
  } catch (error) {
    if (!isFailure(error)) throw error;
  }
};

/** Like workflows/backfill.ts, with one lane: all companies, or those that were chosen for the run. */
export const backfill =
  (kind: RunKind, runId: string): Workflow =>
  async (run) => {
    try {
      const { lanes: _, ...begun } = await run(({ beginRun }) => beginRun, { runId, kind });
      await run(({ readCompanies }) => readCompanies, { runId, kind, lane: 0, ...begun });
      await run(({ concludeRun }) => concludeRun, { runId });
    } catch (error) {
      if (!isFailure(error)) throw error;
      await run(({ failRun }) => failRun, { runId, kind, error: error.message });
    }
  };

/** Whether Temporal would give this failure to the workflow. Anything else is a defect of the test. */
const isFailure = (error: unknown): error is ApplicationFailure => error instanceof ApplicationFailure;
