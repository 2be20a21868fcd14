import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { runEnd, workflowOfRun } from '../app/backfill.ts';
import type { RunState } from '../contract/names.ts';
import type { Database } from '../db/connection/connect.ts';
import { type RunProgress, readRunProgress } from '../db/read/run-progress.ts';
import { describeRun } from './describe-run.ts';
import type { Progress } from './terminal.ts';

const lookEveryMs = 300;

/** Shows a run's progress until it is over; returns how it ended. */
export async function followBackfill(options: {
  client: Client;
  db: Database;
  runId: string;
  progress: Progress;
}): Promise<{ state: RunState; run: RunProgress }> {
  const { client, db, runId, progress } = options;
  const { workflowId } = await readRunProgress(db, runId);
  const workflow = workflowId ?? (await workflowOfRun(client, runId));
  let ended: RunState | undefined;
  if (workflow !== undefined)
    void runEnd(client, workflow).then((state) => {
      ended = state;
    });
  const show = async (): Promise<RunProgress> => {
    const run = await readRunProgress(db, runId);
    progress.show(describeRun(run));
    return run;
  };
  try {
    for (;;) {
      // Read before the progress, so that the last progress shows the end.
      const state = ended;
      const run = await show();
      if (state !== undefined) return { state, run };
      if (run.state !== null && run.state !== 'running') return { state: run.state, run };
      await wait(lookEveryMs);
    }
  } finally {
    progress.done();
  }
}
