import type { Client } from '@temporalio/client';
import { type RunProgress, readRun } from '../app/backfill.ts';
import type { Database } from '../app/warehouse.ts';
import { type RunState, workflowIds } from '../contract/names.ts';

import type { Progress } from './terminal.ts';

const lookEveryMs = 300;

/** Shows a run until it is over; returns how it ended. */
export async function followBackfill(options: {
  client: Client;
  db: Database;
  runId: string;
  progress: Progress;
  signal?: AbortSignal | undefined;
}): Promise<{ state: RunState; run: RunProgress }> {
  const { client, db, runId, progress, signal } = options;
  const began = performance.now();
  let state: RunState | undefined;
  const ended = client.workflow.getHandle(workflowIds.backfillAll(runId)).result() as Promise<RunState>;
  ended.then(
    (result) => {
      state = result;
    },
    () => {
      state = 'failed';
    },
  );
  while (state === undefined) {
    signal?.throwIfAborted();
    progress.show(describeRun(await readRun(db, runId), (performance.now() - began) / 1000));
    await new Promise((done) => setTimeout(done, lookEveryMs));
  }
  const run = await readRun(db, runId);
  progress.show(describeRun(run, (performance.now() - began) / 1000));
  progress.done();
  return { state, run };
}

/** Lines that say how far a run is, how fast it goes and how long it may still take. */
export function describeRun(run: RunProgress, seconds: number): string[] {
  const rows = run.resources.reduce((sum, resource) => sum + resource.rows, 0);
  const left = run.companiesDone === 0 ? '' : remaining(run, seconds);
  const rate = Math.round(rows / Math.max(seconds, 0.1)).toLocaleString('en');
  return [
    `backfill: ${run.companiesDone} of ${run.companies} companies, ${rows.toLocaleString('en')} rows, ${rate} rows/s${left}`,
    ...run.resources.map(
      (r) => `  ${r.resource}: ${r.rows.toLocaleString('en')} rows${r.running > 0 ? ' …' : ''}`,
    ),
  ];
}

function remaining(run: RunProgress, seconds: number): string {
  const companies = run.companies - run.companiesDone;
  if (companies <= 0) return '';
  return `, about ${Math.ceil((seconds / run.companiesDone) * companies)} s left`;
}
