import { monitorPolicy } from '../../contract/retry-policy.ts';
import { remember } from '../../receiver/clock.ts';
import type { CoreMetrics } from '../metrics/temporal-core.ts';

export interface QueueLiveness {
  readonly queue: string;
  /** Whether its worker is running, and has recently begun a poll or has no slot for more work. */
  readonly polls: boolean;
}

export interface Liveness {
  queues(): Promise<readonly QueueLiveness[]>;
}

/**
 * Watches the poll loops of workers through the counts of long polls of Temporal's native library. A queue
 * whose count does not change for `withinMs` is dead, unless the counts cannot be read, or all slots for
 * activities are in use: one check of the data may take hours.
 * @param now milliseconds of a monotonic clock
 * @param withinMs the time in which the worker of a queue has to begin another poll
 */
export function watchPolls(options: {
  readonly workers: readonly { readonly queue: string; runs(): boolean }[];
  readonly core: Pick<CoreMetrics, 'read'>;
  readonly now: () => number;
  readonly withinMs?: number | undefined;
}): Liveness {
  const { workers, core, now, withinMs = monitorPolicy.pollWithinMs } = options;
  const since = now();
  const grew = new Map<string, { readonly count: number; readonly at: number }>();
  const look = remember(
    async () => {
      const text = await core.read();
      // Without figures nothing is known, so every running worker counts as alive.
      if (text === undefined) {
        grew.clear();
        return;
      }
      for (const { queue } of workers) {
        const count = pollsOf(text, queue);
        const grows = count > (grew.get(queue)?.count ?? -1);
        if (grows || slotsOf(text, queue) === 0) grew.set(queue, { count, at: now() });
      }
    },
    monitorPolicy.pollsForMs,
    now,
  );
  return {
    async queues() {
      await look();
      return workers.map(({ queue, runs }) => {
        const at = Math.max(since, grew.get(queue)?.at ?? now());
        return { queue, polls: runs() && now() - at <= withinMs };
      });
    },
  };
}

export const pollsOf = (text: string, queue: string): number =>
  valuesOf(text, 'temporal_long_request_total{', queue).reduce((sum, { value }) => sum + value, 0);

/** The free slots for activities of a queue; undefined if the library does not report them. */
const slotsOf = (text: string, queue: string): number | undefined =>
  valuesOf(text, 'temporal_worker_task_slots_available{', queue).find(({ series }) =>
    series.includes('worker_type="ActivityWorker"'),
  )?.value;

const valuesOf = (text: string, metric: string, queue: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith(metric) && line.includes(`task_queue="${queue}"`))
    .map((series) => ({ series, value: Number(series.slice(series.lastIndexOf(' ') + 1)) }));
