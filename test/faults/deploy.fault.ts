import type { Client } from '@temporalio/client';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect } from 'vitest';
import { replayHistories } from '../../app/temporal/replay-histories.ts';
import { until } from '../support/poll.ts';
import { changedCheckout } from './changed-checkout.ts';
import { eventsPerSecond, fault, times } from './fault.ts';
import { startLoad } from './load.ts';
import { seedOf } from './plan.ts';

interface Checkouts {
  /** The path of this version with more steps, which runs in flight skip. */
  readonly next: string;
  /** The path of a version whose steps runs in flight run into. */
  readonly mistaken: string;
}

/** Runs work with the path of a changed copy of this checkout, and removes the copy. */
async function withCheckout<T>(
  how: Parameters<typeof changedCheckout>[0],
  work: (path: string) => Promise<T>,
): Promise<T> {
  const checkout = await changedCheckout(how);
  try {
    return await work(checkout.path);
  } finally {
    await checkout.remove();
  }
}

const inFlight = `ExecutionStatus = 'Running' and WorkflowType = 'backfill'`;

fault<Checkouts>({
  name: 'C18',
  title: 'a worker with changed workflows takes over in the middle of a backfill',
  alarms: { may: ['RunUnwell'] },
  rig: { size: { companies: 3, documents: 400, intervalDays: 2 } },
  around: (work) =>
    withCheckout('patched', (next) => withCheckout('unpatched', (mistaken) => work({}, { next, mistaken }))),
  prepare: ({ service }) => service.fault({ kind: 'latency', ms: [300, 600] }),
  backfill: 'during',
  loadSeconds: 20,
  strike: async ({ rig: { client, parts, launch, service }, made: { next } }) => {
    await until('companies are being read', async () => (await client.workflow.count(inFlight)).count > 0);
    await parts.worker.stop('SIGTERM');
    launch.worker.checkout = next;
    await parts.worker.start();
    expect((await client.workflow.count(inFlight)).count).toBeGreaterThan(0);
    await service.clearFaults();
  },
  check: async (_figures, { client, parts, said }, { next, mistaken }) => {
    await parts.worker.stop('SIGTERM');
    expect(said('worker').join('\n')).not.toMatch(/TMPRL1100|Nondeterminism/i);
    // All runs, old and new, replay on the new code. On the code that was changed by mistake they do not.
    expect(await replayed(client, next)).toEqual({
      failures: 0,
      histories: expect.toSatisfy((n: number) => n > 10),
    });
    expect((await replayed(client, mistaken)).failures).toBeGreaterThan(0);
  },
});

async function replayed(client: Client, checkout: string): Promise<{ failures: number; histories: number }> {
  const { bundleWorkflows } = (await import(
    `${checkout}/app/temporal/workflow-bundle.ts`
  )) as typeof import('../../app/temporal/workflow-bundle.ts');
  const workflowBundle = await bundleWorkflows(pino({ level: 'silent' }));
  const { failures, histories } = await replayHistories(client, { workflowBundle, which: 'any', most: 15 });
  return { failures: failures.length, histories };
}

/** The sizes of the service: many small companies, and a large one. With `--times 20` they are really large. */
const sizes = [
  { what: 'many small companies', size: { companies: times(50), documents: 4, intervalDays: 1 } },
  { what: 'a large company', size: { companies: 1, documents: times(10_000), intervalDays: 1 } },
] as const;

for (const { what, size } of sizes)
  fault<Pick<Checkouts, 'next'>>({
    name: 'C23',
    title: `a backfill of ${what} goes on after a kill and an update of the worker`,
    alarms: { may: ['RunStalled', 'RunUnwell', 'Silent'] },
    rig: { size },
    around: (work) => withCheckout('patched', (next) => work({}, { next })),
    backfill: 'during',
    load: 'none',
    strike: async ({ rig, made, run, seed }) => {
      const { parts, launch, service, warehouse } = rig;
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
          { timeoutMs: times(600_000), everyMs: times(100) },
        );
      const atKill = await untilRead(1);
      rig.harm();
      await parts.worker.kill();
      await parts.worker.start();
      const atUpdate = await untilRead(2);
      await parts.worker.stop('SIGTERM');
      launch.worker.checkout = made.next;
      await parts.worker.start();
      // Events come afterwards: a listing that changes is read three times, which takes long for a large company.
      expect(await run?.result()).toBe('complete');
      await startLoad(service, seedOf(seed, 'C23'), eventsPerSecond).end(5);
      return `${what}: killed at ${atKill}, updated at ${atUpdate} of ${all}`;
    },
  });
