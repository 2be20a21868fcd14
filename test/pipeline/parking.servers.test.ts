import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const pipeline = await forFile(startPipeline({ size: { companies: 2, documents: 10 } }));
expect(await pipeline.backfill()).toBe('complete');

interface Parked {
  readonly code: string;
  readonly events: number;
  readonly backfillParts: number;
  readonly operator: string;
}

async function json<T>(...args: string[]): Promise<T> {
  const { status, stdout, stderr } = await runCommand([...args, '--json'], { env: pipeline.env });
  expect(status, stderr).toBe(0);
  return JSON.parse(stdout) as T;
}
const parked = async () => (await json<{ parked: Parked[] }>('status')).parked;

/** Counts the requests that the fault refused. */
async function refusals(): Promise<number> {
  const { faults } = await pipeline.service.control<{ faults: { struck: number }[] }>('GET', 'faults');
  return faults.reduce((sum, { struck }) => sum + struck, 0);
}

test('events and backfills are parked, reported and resumed without loss if the service refuses the key', {
  timeout: 180_000,
}, async () => {
  const { service, warehouse } = pipeline;
  await service.fault({ kind: 'status', status: 401 });
  const fired = await service.random(60, 3);
  await until('every event is in the journal', async () => {
    const result = await warehouse.db.execute<{ n: number }>(
      sql`select count(*)::int as n from metersync.events`,
    );
    return result.rows[0]?.n === fired;
  });
  await until('the work is parked', async () => {
    const { rowCount } = await warehouse.db.execute(sql`select from metersync.gates`);
    return rowCount === 1;
  });
  // This prevents a second attempt from becoming due meanwhile on a slow machine.
  await warehouse.db.execute(
    sql`update metersync.gates set next_probe_at = clock_timestamp() + interval '1 hour'`,
  );
  expect(await pipeline.backfill()).toBe('failed');
  expect(await parked()).toEqual([
    expect.objectContaining({
      code: 'SERVICE_KEY_REFUSED',
      backfillParts: 1,
      operator: expect.stringContaining('SERVICE_API_KEY'),
    }),
  ]);
  const forPeople = await runCommand(['status'], { env: pipeline.env });
  expect(forPeople.stdout).toMatch(/^parked since .*: SERVICE_KEY_REFUSED: /m);
  expect(forPeople.stdout).toContain('What to do: Set SERVICE_API_KEY');
  // Far fewer requests than events: three kinds with four requests at once each, and the backfill.
  expect(await refusals()).toBeLessThan(30);

  await service.clearFaults();
  const resumed = await json<{ events: number; runId: string; companies: null }>('resume');
  expect(resumed).toMatchObject({ runId: expect.any(String), companies: null });
  await pipeline.settled();
  expect(await parked()).toEqual([]);
  expect((await pipeline.audit()).differences).toBe(0);
  expect((await runCommand(['resume'], { env: pipeline.env })).stdout).toBe('Nothing is parked.');
});
