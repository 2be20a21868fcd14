import type { Client } from '@temporalio/client';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { replayHistories } from '../../app/temporal/replay-histories.ts';
import { workflowIds } from '../../contract/names.ts';
import { until } from '../support/poll.ts';
import { workLate } from './alarms.ts';
import { changedCheckout } from './changed-checkout.ts';
import { type Found, fault, seeds, times } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const inFlight = `ExecutionStatus = 'Running' and WorkflowType = 'backfill'`;

fault(
  'C18',
  'a worker with changed workflows takes over in the middle of a backfill',
  seeds().slice(0, 1),
  { may: ['RunUnwell'] },
  async (seed) => {
    const [next, mistaken] = await Promise.all([changedCheckout('patched'), changedCheckout('unpatched')]);
    const rig = await startRig({ size: { companies: 3, documents: 400, intervalDays: 2 } });
    const { service, client, parts, launch } = rig;
    try {
      await service.fault({ kind: 'latency', ms: [300, 600] });
      const runId = await startBackfill(client);
      const load = startLoad(service, seedOf(seed, 'C18'), eventsPerSecond);
      await until('companies are being read', async () => (await client.workflow.count(inFlight)).count > 0);
      await parts.worker.stop('SIGTERM');
      launch.worker.checkout = next.path;
      await parts.worker.start();
      expect((await client.workflow.count(inFlight)).count).toBeGreaterThan(0);
      await service.clearFaults();
      const { perSecond } = await load.end(20);
      expect(['complete', 'suspect']).toContain(
        await client.workflow.getHandle(workflowIds.backfill(runId)).result(),
      );
      const figures = await verdict(rig);
      await parts.worker.stop('SIGTERM');
      expect(rig.said('worker').join('\n')).not.toMatch(/TMPRL1100|Nondeterminism/i);

      // All runs, old and new, replay on the new code. On the code that was changed by mistake they do not.
      expect(await replayed(client, next.path)).toEqual({
        failures: 0,
        histories: expect.toSatisfy((n: number) => n > 10),
      });
      expect((await replayed(client, mistaken.path)).failures).toBeGreaterThan(0);
      return { injected: '', perSecond, figures };
    } finally {
      await rig.stop();
      await Promise.all([next.remove(), mistaken.remove()]);
    }
  },
);

/** The sizes of the service: many small companies, and a large one. With `--times 20` they are really large. */
const sizes = [
  { what: 'many small companies', size: { companies: times(50), documents: 4, intervalDays: 1 } },
  { what: 'a large company', size: { companies: 1, documents: times(10_000), intervalDays: 1 } },
] as const;

fault(
  'C23',
  'a backfill of many companies, and of a large company, goes on after a kill and an update of the worker',
  seeds().slice(0, 1),
  { may: [...workLate, 'Silent'] },
  async (seed) => {
    const next = await changedCheckout('patched');
    const found: Found[] = [];
    try {
      for (const { what, size } of sizes) found.push(await updatedWithin(seed, what, size, next.path));
    } finally {
      await next.remove();
    }
    const [first] = found as [Found];
    return { ...first, injected: found.map(({ injected }) => injected).join('; ') };
  },
);

/** Kills the worker when a third of the documents are read, and updates it when two thirds are. */
async function updatedWithin(
  seed: number,
  what: string,
  size: (typeof sizes)[number]['size'],
  checkout: string,
): Promise<Found> {
  const rig = await startRig({ size });
  const { client, parts, launch, service, warehouse } = rig;
  const within = { timeoutMs: times(600_000), everyMs: times(100) };
  const all = size.companies * size.documents;
  const read = async (): Promise<number> => {
    const { rows } = await warehouse.db.execute<{ read: number }>(
      sql`select count(*)::int as read from utility.documents where raw is not null`,
    );
    return rows[0]?.read ?? 0;
  };
  const untilRead = (thirds: number): Promise<number> =>
    until(
      `${thirds} thirds of ${all} documents are read`,
      async () => ((await read()) >= (all * thirds) / 3 ? await read() : undefined),
      within,
    );
  try {
    const runId = await startBackfill(client);
    const atKill = await untilRead(1);
    rig.harm();
    await parts.worker.kill();
    await parts.worker.start();
    const atUpdate = await untilRead(2);
    await parts.worker.stop('SIGTERM');
    launch.worker.checkout = checkout;
    await parts.worker.start();
    // Events come afterwards: a listing that changes is read three times, which takes long for a large company.
    expect(await client.workflow.getHandle(workflowIds.backfill(runId)).result()).toBe('complete');
    const { perSecond } = await startLoad(service, seedOf(seed, 'C23'), eventsPerSecond).end(5);
    const figures = await verdict(rig);
    return { injected: `${what}: killed at ${atKill}, updated at ${atUpdate} of ${all}`, perSecond, figures };
  } finally {
    await rig.stop();
  }
}

async function replayed(client: Client, checkout: string): Promise<{ failures: number; histories: number }> {
  const { bundleWorkflows } = (await import(
    `${checkout}/app/temporal/workflow-bundle.ts`
  )) as typeof import('../../app/temporal/workflow-bundle.ts');
  const workflowBundle = await bundleWorkflows(pino({ level: 'silent' }));
  const { failures, histories } = await replayHistories(client, { workflowBundle, which: 'any', most: 15 });
  return { failures: failures.length, histories };
}
