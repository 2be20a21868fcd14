import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { createRandom } from '../../bench/world.ts';
import { workflowIds } from '../../contract/names.ts';
import { fault, say, seeds, times } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import type { Part } from './part.ts';
import { seedOf } from './plan.ts';
import { type CuttingProxy, startBalancer, startProxy } from './proxy.ts';
import { startRig, steadyPort } from './rig.ts';
import { verdict } from './verdict.ts';

const receivers = 3;
const workers = 4;
/** The most requests to the service that each worker may send at once. */
const limit = 3;
const loadSeconds = 30;

fault(
  'C20',
  `${receivers} receivers and ${workers} workers; one of each is killed, three times`,
  seeds(),
  { may: ['ChangesMissed', 'RunStalled', 'RunUnwell'] },
  async (seed) => {
    const random = createRandom(seedOf(seed, 'C20'));
    const balancer = await startBalancer();
    const proxies: CuttingProxy[] = [];
    let most = 0;
    const throughProxy = async (service: string): Promise<string> => {
      let now = 0;
      const proxy = await startProxy(service, (change) => {
        now += change;
        most = Math.max(most, now);
      });
      proxies.push(proxy);
      return proxy.address;
    };
    const rig = await startRig({
      size: { companies: 12, documents: 60, intervalDays: 2 },
      env: { SERVICE_MAX_CONCURRENCY: String(limit) },
      between: {
        serviceAndReceiver: (receiver) => Promise.resolve(balancer.add(receiver)),
        workerAndService: throughProxy,
      },
    });
    const fleet: Record<'receiver' | 'worker', Part[]> = {
      receiver: [rig.parts.receiver],
      worker: [rig.parts.worker],
    };
    try {
      while (fleet.receiver.length < receivers) {
        const port = String(await steadyPort());
        balancer.add(`127.0.0.1:${port}`);
        fleet.receiver.push(rig.another('receiver', { RECEIVER_PORT: port }));
      }
      while (fleet.worker.length < workers) {
        const SERVICE_URL = await throughProxy(rig.service.apiUrl);
        fleet.worker.push(rig.another('worker', { SERVICE_URL }));
      }
      await Promise.all([...fleet.receiver, ...fleet.worker].map((part) => part.start()));
      const load = startLoad(rig.service, seedOf(seed, 'C20'), eventsPerSecond);
      const runId = await startBackfill(rig.client);
      let kills = 0;
      for (let round = 0; round < times(3); round++) {
        await delay(random.int(500, 2_000));
        rig.harm();
        await Promise.all(
          Object.values(fleet).map(async (parts) => {
            await delay(random.int(0, 1_000));
            const part = parts[random.int(0, parts.length - 1)];
            await part?.kill();
            await delay(random.int(0, 2_000));
            await part?.start();
            kills += 1;
          }),
        );
      }
      const { perSecond } = await load.end(loadSeconds);
      const run = rig.client.workflow.getHandle(workflowIds.backfill(runId));
      expect(['complete', 'suspect']).toContain(await run.result());
      const figures = await verdict(rig);
      const taken = [...balancer.taken.values()];
      const reads = proxies.map(({ gets }) => gets);
      say(`C20, seed ${seed}: connections ${taken}; reads ${reads}, at most ${most} at once of one worker`);
      // No receiver and no worker is idle, and each worker keeps its limit.
      expect(Math.min(...taken)).toBeGreaterThan(0);
      expect(Math.min(...reads)).toBeGreaterThan(0);
      expect(most).toBeLessThanOrEqual(limit);
      return { injected: '', perSecond, figures: { ...figures, kills } };
    } finally {
      await rig.stop();
      await Promise.all([balancer, ...proxies].map((proxy) => proxy.close()));
    }
  },
);
