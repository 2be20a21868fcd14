import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { DueForSweep, OwnersSwept } from '../../activities/sweep/sweep.ts';
import { sweepBounds } from '../../contract/limits.ts';
import { type Queue, taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { withStubs } from '../support/stub-worker.ts';

const nothing: DueForSweep = { owners: [], dueInMs: null, probes: [] };

test('the sweep reads each owner in one lane at a time, and a slow owner holds up no other', async () => {
  const left = new Set(Array.from({ length: 100 }, (_, at) => `owner ${at}`));
  const slow = Promise.withResolvers<void>();
  let inWork = 0;
  let most = 0;
  const activities = {
    dueForSweep: async ({
      limit,
      except,
    }: {
      limit: number;
      except: readonly Queue[];
    }): Promise<DueForSweep> => {
      const busy = new Set(except.map(({ owner }) => owner));
      const owners = [...left].filter((owner) => !busy.has(owner)).slice(0, limit);
      return {
        owners: owners.map((owner) => ({ kind: 'documents', owner })),
        dueInMs: left.size === 0 ? null : 0,
        probes: [],
      };
    },
    sweepOwners: async ({ owners }: { owners: readonly Queue[] }): Promise<OwnersSwept> => {
      inWork += 1;
      most = Math.max(most, inWork);
      for (const { owner } of owners) {
        if (owner === 'owner 0') await slow.promise;
        expect(left.delete(owner)).toBe(true);
        if (left.size === sweepBounds.ownersPerLane) slow.resolve();
      }
      inWork -= 1;
      return { large: [] };
    },
  };
  await withStubs(taskQueues.events, activities, async (client) => {
    await client.workflow.execute(workflowNames.sweep, {
      workflowId: workflowIds.sweep,
      taskQueue: taskQueues.events,
    });
  });
  expect([...left]).toEqual([]);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(sweepBounds.lanes);
});

test('the sweep waits for what is due soon, and leaves the rest to the next sweep', async () => {
  const answers: DueForSweep[] = [
    { owners: [], dueInMs: 10, probes: [] },
    { owners: [{ kind: 'intervals', owner: 'm-1' }], dueInMs: 0, probes: [] },
    { owners: [], dueInMs: sweepBounds.soonMs + 1, probes: [] },
  ];
  const swept: (readonly Queue[])[] = [];
  const activities = {
    dueForSweep: async (): Promise<DueForSweep> => answers.shift() ?? nothing,
    sweepOwners: async ({ owners }: { owners: readonly Queue[] }): Promise<OwnersSwept> => {
      swept.push(owners);
      return { large: [] };
    },
  };
  await withStubs(taskQueues.events, activities, async (client) => {
    await client.workflow.execute(workflowNames.sweep, {
      workflowId: workflowIds.sweep,
      taskQueue: taskQueues.events,
    });
  });
  expect(swept).toEqual([[{ kind: 'intervals', owner: 'm-1' }]]);
});

test('the sweep asks whether the service answers again, once at a time, and then reads what was held back', async () => {
  const owner = { kind: 'documents', owner: 'company' } as const;
  let state: 'closed' | 'open' | 'read' = 'closed';
  let probes = 0;
  let most = 0;
  const activities = {
    dueForSweep: async ({ except }: { except: readonly Queue[] }): Promise<DueForSweep> => {
      if (state === 'closed') return { owners: [], dueInMs: 0, probes: ['service'] };
      return state === 'open' && except.length === 0 ? { ...nothing, owners: [owner], dueInMs: 0 } : nothing;
    },
    probeGates: async (): Promise<void> => {
      probes += 1;
      most = Math.max(most, probes);
      await setTimeout(3 * sweepBounds.lookMinMs);
      state = 'open';
      probes -= 1;
    },
    sweepOwners: async ({ owners }: { owners: readonly Queue[] }): Promise<OwnersSwept> => {
      expect(owners).toEqual([owner]);
      state = 'read';
      return { large: [] };
    },
  };
  await withStubs(taskQueues.events, activities, async (client) => {
    await client.workflow.execute(workflowNames.sweep, {
      workflowId: workflowIds.sweep,
      taskQueue: taskQueues.events,
    });
  });
  expect(state).toBe('read');
  expect(most).toBe(1);
});

test('an owner with very many due records is read in a lane of its own, and the other owners of the lane go on', async () => {
  const queues = ['large', 'small'].map((owner) => ({ kind: 'documents', owner }) as const);
  const [large, small] = queues as [Queue, Queue];
  const excepts: (readonly Queue[])[] = [];
  const walked: Queue[] = [];
  const isWalked = Promise.withResolvers<void>();
  const activities = {
    dueForSweep: async ({ except }: { except: readonly Queue[] }): Promise<DueForSweep> => {
      excepts.push(except);
      if (except.length === 1) isWalked.resolve();
      return excepts.length === 1 ? { ...nothing, owners: [small, large], dueInMs: 0 } : nothing;
    },
    sweepOwners: async ({
      owners,
      walks = false,
    }: {
      owners: readonly Queue[];
      walks?: boolean;
    }): Promise<OwnersSwept> => {
      if (!walks) return { large: owners.filter(({ owner }) => owner === large.owner) };
      walked.push(...owners);
      await isWalked.promise;
      return { large: [] };
    },
  };
  await withStubs(taskQueues.events, activities, async (client) => {
    await client.workflow.execute(workflowNames.sweep, {
      workflowId: workflowIds.sweep,
      taskQueue: taskQueues.events,
    });
  });
  expect(walked).toEqual([large]);
  expect(excepts).toContainEqual([large]);
});
