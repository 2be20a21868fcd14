import { createRandom } from '../generate/random.ts';
import type { ChangeService } from './service.ts';

/** Makes plausible changes continuously, as at a real service. */
export interface Live {
  /** 0 stops the changes. */
  setRate(perMinute: number): void;
  rate(): number;
  stop(): Promise<void>;
}

/** How many changes may wait. If the machine is too slow for the rate, further changes are left out. */
const waitingMax = 50;

export function createLive(changes: ChangeService, seed: number, report: (error: Error) => void): Live {
  const random = createRandom('live', seed);
  let timer: NodeJS.Timeout | undefined;
  let perMinute = 0;
  const waiting = new Set<Promise<unknown>>();

  const tick = () => {
    if (waiting.size >= waitingMax) return;
    const change = changes
      .random({ count: 1, seed: random.word(), types: undefined })
      .catch(report)
      .finally(() => waiting.delete(change));
    waiting.add(change);
  };

  return {
    setRate(asked) {
      clearInterval(timer);
      perMinute = asked;
      if (asked > 0) timer = setInterval(tick, 60_000 / asked);
    },
    rate: () => perMinute,
    async stop() {
      clearInterval(timer);
      await Promise.all(waiting);
    },
  };
}
