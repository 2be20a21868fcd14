import type { Client } from '@temporalio/client';
import { workflowIds, workflowNames } from '../../contract/names.ts';
import { until } from './poll.ts';

/** Holds a company by another run that never ends, as no worker polls its queue. */
export async function holdCompany(client: Client, companyId: string): Promise<{ release(): Promise<void> }> {
  const held = await client.workflow.start(workflowNames.backfillCompany, {
    workflowId: workflowIds.backfillCompany(companyId),
    taskQueue: 'nobody-listens',
    args: [{ runId: 'another', companyId }],
  });
  return { release: async () => void (await held.terminate('the other run is over')) };
}

/**
 * Waits until a run has checked this often for the turn of each company; returns the events of its history.
 */
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
