import type { TemporalArrival } from './temporal-arrival.ts';

/** A part that runs until it is stopped; `finished` rejects when it fails by itself. */
export interface Running {
  readonly finished: Promise<void>;
  /** Drains: what was accepted is answered or finished or handed over. */
  stop(): Promise<void>;
}

/** A part that is started when Temporal is there, which may be never. */
export function whenThere(arrival: TemporalArrival, start: () => Promise<Running>): Running {
  const started = arrival.arrived.then(start);
  const finished = started.then((part) => part.finished);
  // Whoever waits for it is told; when it fails while all is stopped nobody does.
  finished.catch(() => {});
  return {
    finished,
    stop: async () => {
      await arrival.stop();
      if (!arrival.isThere()) return;
      const [part] = await Promise.allSettled([started]);
      if (part.status === 'fulfilled') await part.value.stop();
    },
  };
}
