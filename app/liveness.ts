import { monitorPolicy } from '../contract/retry-policy.ts';
import { remember } from '../receiver/remember.ts';
import type { CoreMetrics } from './metrics/temporal-core.ts';

export interface QueueLiveness {
  readonly queue: string;
  /** Whether its worker runs, and began a poll lately. */
  readonly polls: boolean;
}

/** Whether the workers of this process still poll. */
export interface Liveness {
  queues(): Promise<readonly QueueLiveness[]>;
}

/**
 * Watches the poll loops of workers through the counts that Temporal's native library keeps of its long
 * polls. A queue whose count stands still counts as dead; one that the library does not report does not.
 * @param now milliseconds of a clock that only grows
 * @param withinMs the time in which the worker of a queue has to begin another poll
 */
export function watchPolls(options: {
  readonly workers: readonly { readonly queue: string; runs(): boolean }[];
  readonly core: Pick<CoreMetrics, 'text'>;
  readonly now: () => number;
  readonly withinMs?: number | undefined;
}): Liveness {
  const { workers, core, now, withinMs = monitorPolicy.pollWithinMs } = options;
  const since = now();
  const grew = new Map<string, { readonly count: number; readonly at: number }>();
  const look = remember(
    async () => {
      const text = await core.text();
      // Without figures nothing is known: what runs counts as alive.
      if (text === undefined) {
        grew.clear();
        return;
      }
      for (const { queue } of workers) {
        const count = pollsOf(text, queue);
        if (count > (grew.get(queue)?.count ?? -1)) grew.set(queue, { count, at: now() });
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

/** Adds up the long polls of a queue, failed ones too. */
export function pollsOf(text: string, queue: string): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    if (!line.startsWith('temporal_long_request_total{') || !line.includes(`task_queue="${queue}"`)) continue;
    sum += Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return sum;
}
