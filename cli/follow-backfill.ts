import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { chosenCompanies, type RunProgress, readRunProgress, runEnd } from '../app/backfill.ts';
import type { Database } from '../app/warehouse.ts';
import type { RunState } from '../contract/names.ts';
import { createRate, describeRun } from './describe-run.ts';
import type { Progress } from './terminal.ts';

const lookEveryMs = 300;

/**
 * Shows a run until it is over; returns how it ended. A run that a schedule started is known by its rows alone.
 * @throws the signal's reason when it aborts: the run goes on
 */
export async function followBackfill(options: {
  client: Client;
  db: Database;
  runId: string;
  progress: Progress;
  signal?: AbortSignal | undefined;
}): Promise<{ state: RunState; run: RunProgress }> {
  const { client, db, runId, progress, signal } = options;
  const chosen = await chosenCompanies(client, runId);
  const rate = createRate();
  let ended: RunState | undefined;
  void runEnd(client, runId).then((state) => {
    ended = state;
  });
  const show = async (): Promise<RunProgress> => {
    const run = await readRunProgress(db, runId);
    const { rows, companies } = run;
    progress.show(
      describeRun({ run, companies: chosen ?? companies, rate: rate({ atMs: performance.now(), rows }) }),
    );
    return run;
  };
  try {
    for (;;) {
      // Taken before the look, so that the last one shows the end.
      const state = ended;
      const run = await show();
      if (state !== undefined) return { state, run };
      if (run.state !== null && run.state !== 'running') return { state: run.state, run };
      await wait(lookEveryMs, undefined, { signal });
    }
  } finally {
    progress.done();
  }
}
