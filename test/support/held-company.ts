import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { workflowIds, workflowNames } from '../../contract/names.ts';
import { failRunAndParts } from '../../db/backfill/run-end.ts';
import { startRun } from '../../db/backfill/runs.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { until } from './poll.ts';

/** Lets another run hold a company. It has begun to read it and never ends: no worker polls its queue. */
export async function holdCompany(
  client: Client,
  { db }: Pick<Warehouse, 'db'>,
  companyId: string,
): Promise<{ release(): Promise<void> }> {
  const runId = randomUUID();
  const workflowId = workflowIds.backfillCompany(companyId);
  const held = await client.workflow.start(workflowNames.backfillCompany, {
    workflowId,
    taskQueue: 'nobody-listens',
    args: [{ runId, companyId }],
  });
  await startRun(db, { runId, companyId: null, resource: null }, { workflowId });
  await startRun(db, { runId, companyId, resource: 'documents' });
  return {
    release: async () => {
      await held.terminate('the other run is over');
      await failRunAndParts(db, runId, 'the other run is over');
    },
  };
}

/** Waits until a run has asked `looks` times for each company; returns the events of its history. */
export async function waited(
  client: Client,
  runId: string,
  { looks, companies }: { looks: number; companies: number },
): Promise<number> {
  return await until(
    `the run looked ${looks} times`,
    async () => {
      const { raw, historyLength } = await client.workflow
        .getHandle(workflowIds.backfillAll(runId))
        .describe();
      const attempts = raw.pendingActivities?.map(({ attempt }) => attempt ?? 0) ?? [];
      const all = attempts.filter((attempt) => attempt >= looks).length === companies;
      return all ? historyLength : undefined;
    },
    { timeoutMs: 60_000 },
  );
}
