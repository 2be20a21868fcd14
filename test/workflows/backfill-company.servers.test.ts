import { Context } from '@temporalio/activity';
import { expect, test } from 'vitest';
import type { CompanyReading, CompanyStep } from '../../activities/backfill/intervals.ts';
import { taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { withStubs } from '../support/stub-worker.ts';

test('several workflows in turn read a company with very many meters, and none of them has a long history', async () => {
  const places: (string | null)[] = [];
  const runIds = new Set<string>();
  const activities = {
    beginRun: async () => ({ listed: true }),
    nextCompanies: async () => ({ companies: ['large'], last: null }),
    readCompany: async ({ cursor }: CompanyReading): Promise<CompanyStep> => {
      places.push(cursor?.after ?? null);
      runIds.add(Context.current().info.workflowExecution?.runId ?? '');
      // Temporal calls a history long from 4,096 events, or 4 MiB.
      const next = { after: String(places.length), doubt: 'x'.repeat(900_000) };
      return { done: places.length === 6, cursor: next as CompanyStep['cursor'] };
    },
    concludeRun: async () => 'complete',
  };
  const sizes = await withStubs(taskQueues.backfill, activities, async (client) => {
    const options = { workflowId: 'run', taskQueue: taskQueues.backfill, args: [{ runId: 'run' }] };
    expect(await client.workflow.execute(workflowNames.backfillAll, options)).toBe('complete');
    const workflowId = workflowIds.backfillCompany('large');
    const parts = [...runIds].map((runId) => client.workflow.getHandle(workflowId, runId).describe());
    return (await Promise.all(parts)).map(({ historySize }) => historySize ?? 0);
  });
  expect(places).toEqual([null, '1', '2', '3', '4', '5']);
  expect(sizes.length).toBeGreaterThan(1);
  // A step more than what Temporal calls long.
  expect(Math.max(...sizes)).toBeLessThan(7_000_000);
});
