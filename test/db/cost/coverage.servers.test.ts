import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { taskQueues, workflowIds, workflowNames } from '../../../contract/names.ts';
import { startPipeline } from '../../support/pipeline.ts';
import { statementsOf } from '../../support/statements-sent.ts';
import { createWarehouse } from '../../support/warehouse.ts';
import { notMeasured } from './exceptions.ts';
import { loadPlots, prepareTables } from './rows.ts';
import { everything } from './work/everything.ts';

test('every statement that a whole run sends has a cost case', {
  timeout: 240_000,
}, async () => {
  const cases = await createWarehouse();
  onTestFinished(() => cases.drop());
  await prepareTables(cases.db);
  await loadPlots(cases.db, 1, everything.length);
  for (const [at, work] of everything.entries()) {
    await work.prepare?.(cases, at + 1);
    await work.run(cases, at + 1);
  }
  const measured = await statementsOf(cases.url);

  const pipeline = await startPipeline({ size: { companies: 2, documents: 30, intervalDays: 1 } });
  onTestFinished(() => pipeline.stop());
  const { service, client } = pipeline;
  expect(await pipeline.backfill()).toBe('complete');
  await service.disturb({ duplicate: 0.1, shuffle: true, delayMs: [0, 400] });
  await service.random(150, 1);
  await pipeline.settled();
  const runId = randomUUID();
  const options = {
    workflowId: workflowIds.reconcile(runId),
    taskQueue: taskQueues.backfill,
    args: [{ runId }],
  };
  expect(await client.workflow.execute(workflowNames.reconcile, options)).toBe('complete');
  await client.workflow.getHandle(workflowIds.checkData(runId)).result();
  const sent = await statementsOf(pipeline.warehouse.url);

  expect(sent.size).toBeGreaterThan(60);
  expect(leftOut(sent, measured).join('\n\n')).toBe('');
  const needless = notMeasured.filter((one) => ![...sent.values()].some((query) => isPart(one, query)));
  expect(needless, 'they were not sent').toEqual([]);

  // The test can fail.
  await pipeline.warehouse.db.execute(sql`select account_id from utility.meters where id = 'no meter'`);
  const more = await statementsOf(pipeline.warehouse.url);
  expect(leftOut(more, measured)).toEqual(['select account_id from utility.meters where id = $1']);
});

const isPart = ({ statement }: { readonly statement: string }, query: string): boolean =>
  `;${query};`.includes(statement);

/** Statements that are neither measured nor exempt. */
function leftOut(sent: ReadonlyMap<string, string>, measured: ReadonlyMap<string, string>): string[] {
  const left = [...sent].flatMap(([id, query]) => (measured.has(id) ? [] : [query]));
  return left.filter((query) => !notMeasured.some((one) => isPart(one, query)));
}
