import { setTimeout as delay } from 'node:timers/promises';
import type { TestSandbox } from '../support/sandbox.ts';

/** A load that makes events at a rate until it is ended. */
export interface Load {
  /** Ends the load, `atLeastSeconds` after its start or later. Returns the number of events and the rate. */
  end(atLeastSeconds?: number): Promise<{ events: number; perSecond: number }>;
}

/** The interval between requests for changes; each asks for as many as keep the rate. */
const everyMs = 250;

/** Makes random valid changes at a rate of `perSecond` events. The same seed makes the same changes. */
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
      // A change makes one event or two events.
      if (owed > 0) events += await service.random(owed, (seed + batch) >>> 0, types);
      await delay(everyMs);
    }
    return { events, perSecond: events / elapsed() };
  })();
  // The caller of `end` gets the failure.
  running.catch(() => {});
  return {
    end: async (atLeastSeconds = 0) => {
      await delay(Math.max(0, atLeastSeconds - elapsed()) * 1000);
      over = true;
      return await running;
    },
  };
}
