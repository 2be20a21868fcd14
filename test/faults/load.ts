import { setTimeout as delay } from 'node:timers/promises';
import type { TestSandbox } from '../support/sandbox.ts';

/** Events that the service makes, at a rate, until it is ended. */
export interface Load {
  /** Ends it, `atLeastSeconds` after it began at the earliest; returns how many events it made and how many a second. */
  end(atLeastSeconds?: number): Promise<{ events: number; seconds: number; perSecond: number }>;
}

/** Asked for, so that 200 come of it where a batch takes long. */
export const eventsPerSecond = 220;

/** How often changes are asked for: so many at once as keep the rate. */
const everyMs = 250;

/** Random valid changes, the same for the same seed, so many that `perSecond` events come of them. */
export function startLoad(
  service: TestSandbox,
  seed: number,
  perSecond: number,
  types?: readonly string[],
): Load {
  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1000;
  let events = 0;
  let over = false;
  const running = (async () => {
    for (let batch = 0; !over; batch++) {
      const owed = Math.ceil(elapsed() * perSecond) - events;
      // A change is told of by one event, or two.
      if (owed > 0) events += await service.random(owed, (seed + batch) >>> 0, types);
      await delay(everyMs);
    }
  })();
  // Whoever ends it learns of a failure.
  running.catch(() => {});
  return {
    end: async (atLeastSeconds = 0) => {
      await delay(Math.max(0, atLeastSeconds - elapsed()) * 1000);
      over = true;
      await running;
      const seconds = elapsed();
      return { events, seconds, perSecond: events / seconds };
    },
  };
}
