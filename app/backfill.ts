import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { type SQL, sql } from 'drizzle-orm';
import { type RunState, taskQueues, workflowIds, workflowNames } from '../contract/names.ts';
import type { Database } from '../db/connect.ts';

/** Starts a backfill of the given companies, or of all; returns its run id. */
export async function startBackfill(client: Client, companies?: readonly string[]): Promise<string> {
  const runId = randomUUID();
  await client.workflow.start(workflowNames.backfillAll, {
    workflowId: workflowIds.backfillAll(runId),
    taskQueue: taskQueues.backfill,
    args: [companies === undefined ? { runId } : { runId, companies }],
  });
  return runId;
}

/** How far a run is, from its rows in `metersync.runs`. */
export interface RunProgress {
  readonly state: RunState | null;
  readonly error: string | null;
  readonly companies: number;
  readonly companiesDone: number;
  readonly resources: readonly {
    readonly resource: string;
    readonly rows: number;
    readonly pages: number;
    readonly running: number;
  }[];
}

export async function readRun(db: Database, runId: string): Promise<RunProgress> {
  const of: SQL = sql`run_id = ${runId}::uuid`;
  const [run, companies, resources] = await Promise.all([
    db.execute<{ state: RunState; error: string | null }>(
      sql`select state, error from metersync.runs where ${of} and company_id is null and resource is null`,
    ),
    db.execute<{ known: number; done: number }>(sql`
      select (select count(*)::int from utility.companies where deleted_at is null) as known,
        count(*) filter (where resource = 'intervals' and state <> 'running')::int as done
      from metersync.runs where ${of}`),
    db.execute<{ resource: string; rows: number; pages: number; running: number }>(sql`
      select resource, sum(rows_inserted + rows_changed + rows_unchanged)::int as rows, sum(pages)::int as pages,
        count(*) filter (where state = 'running')::int as running
      from metersync.runs where ${of} and resource is not null group by resource order by min(started_at)`),
  ]);
  return {
    state: run.rows[0]?.state ?? null,
    error: run.rows[0]?.error ?? null,
    companies: companies.rows[0]?.known ?? 0,
    companiesDone: companies.rows[0]?.done ?? 0,
    resources: resources.rows,
  };
}

/** Whether a worker takes work of a queue: without one, it would wait for ever. */
export async function workerIsPolling(
  client: Client,
  queue: keyof typeof taskQueues = 'backfill',
): Promise<boolean> {
  const answer = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueues[queue] },
    taskQueueType: 1,
  });
  return (answer.pollers?.length ?? 0) > 0;
}
