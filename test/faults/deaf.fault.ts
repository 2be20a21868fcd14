import { setTimeout as delay } from 'node:timers/promises';
import { startBackfill } from '../../app/backfill.ts';
import { createRandom } from '../../bench/world.ts';
import { fault, say, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { drawn, seedOf } from './plan.ts';
import { type CuttingProxy, startProxy } from './proxy.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const deafMs = 20_000;
const betweenMs = 3_000;

fault(
  'C22',
  'two parts hear nothing of each other for 20 s, over connections that stay open',
  seeds().slice(0, 1),
  { may: ['RunStalled', 'RunUnwell'] },
  async (seed) => {
    const proxies = new Map<string, CuttingProxy>();
    const through = (name: string) => async (target: string) => {
      const proxy = await startProxy(target);
      proxies.set(name, proxy);
      return proxy.address;
    };
    const rig = await startRig({
      size: { companies: 3, documents: 300, intervalDays: 2 },
      between: {
        serviceAndReceiver: through('the service and the receiver'),
        receiverAndTemporal: through('the receiver and Temporal'),
        workerAndTemporal: through('the worker and Temporal'),
        workerAndPostgres: through('the worker and Postgres'),
        workerAndService: through('the worker and the service'),
      },
    });
    try {
      // A first backfill runs while the parts hear nothing.
      await rig.service.fault({ kind: 'latency', ms: [400, 800] });
      await startBackfill(rig.client);
      const random = createRandom(seedOf(seed, 'C22'));
      const load = startLoad(rig.service, seedOf(seed, 'C22'), eventsPerSecond);
      for (const [name, proxy] of drawn(random, proxies)) {
        await delay(betweenMs);
        say(`C22, seed ${seed}: ${name}`);
        rig.harm();
        proxy.deafen(true);
        await delay(deafMs);
        proxy.deafen(false);
      }
      await rig.service.clearFaults();
      const { perSecond } = await load.end();
      const figures = await verdict(rig);
      return { injected: '', perSecond, figures };
    } finally {
      await rig.stop();
      for (const proxy of proxies.values()) await proxy.close();
    }
  },
);
