import { Context } from '@temporalio/activity';
import { expect, test } from 'vitest';
import type { CompanyStep, IntervalCursor } from '../../activities/backfill/cursor.ts';
import type { Slice, SliceRead } from '../../activities/backfill/slice.ts';
import { taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { withStubs } from '../support/stub-worker.ts';

test('a company with very many meters is read by several workflows in turn, so none of them has a long history', async () => {
  const places: (string | null)[] = [];
  const runIds = new Set<string>();
  const activities = {
    beginRun: async () => ({ listed: true }),
    nextCompanies: async () => ({ companies: ['large'], last: null }),
    readCompany: async ({ cursor }: { cursor: IntervalCursor | null }): Promise<CompanyStep> => {
      places.push(cursor?.after ?? null);
      runIds.add(Context.current().info.workflowExecution?.runId ?? '');
      // Temporal calls a history long if it has 4,096 events or 4 MiB.
      const next = { after: String(places.length), doubt: 'x'.repeat(900_000) };
      return { done: places.length === 6, cursor: next as IntervalCursor };
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
  // The history may be one step longer than what Temporal calls long.
  expect(Math.max(...sizes)).toBeLessThan(7_000_000);
});

test('companies that a slice did not begin are the next slice, and a company that it did not finish gets its own workflow', async () => {
  const ids = Array.from({ length: 16 }, (_, at) => `company ${at}`);
  const slices: (readonly string[])[] = [];
  const read: [string, string | null][] = [];
  const activities = {
    beginRun: async () => ({ listed: true }),
    nextCompanies: async () => ({ companies: ids, last: null }),
    readCompanies: async ({ companies: [first = '', ...rest] }: Slice): Promise<SliceRead> => {
      slices.push([first, ...rest]);
      const cursor = { resource: 'intervals', after: 'm-1' } as IntervalCursor;
      return { left: first === 'company 4' ? [{ companyId: first, cursor }] : [], rest };
    },
    readCompany: async (reading: {
      companyId: string;
      cursor: IntervalCursor | null;
    }): Promise<CompanyStep> => {
      read.push([reading.companyId, reading.cursor?.after ?? null]);
      return { done: true, cursor: null };
    },
    concludeRun: async () => 'complete',
  };
  await withStubs(taskQueues.backfill, activities, async (client) => {
    const options = { workflowId: 'run', taskQueue: taskQueues.backfill, args: [{ runId: 'run' }] };
    expect(await client.workflow.execute(workflowNames.backfillAll, options)).toBe('complete');
  });
  expect(slices.map(([first]) => first).sort()).toEqual(ids.toSorted());
  expect(slices).toHaveLength(16);
  expect(read).toEqual([['company 4', 'm-1']]);
});
