import { setTimeout as delay } from 'node:timers/promises';
import { median } from '../measure.ts';
import type { Pipeline } from './start.ts';

const lookEveryMs = 250;

/** Resident memory of receiver and worker in megabytes: at the start, the middle and the end of a load. */
export type MemoryFigures = Readonly<
  Record<'rssStartMb' | 'rssMiddleMb' | 'rssEndMb' | 'rssGrowthMb', number>
>;

/** Samples the memory of receiver and worker. `rssGrowthMb` is the growth during the second half. */
export function watchMemory({ process }: Pipeline): { stop(): Promise<MemoryFigures> } {
  const bytes: number[] = [];
  let over = false;
  const watching = (async () => {
    while (!over) {
      bytes.push(await process.call('memory', undefined));
      await delay(lookEveryMs);
    }
  })();
  const megabytes = (from: number, to: number) => {
    const first = Math.floor(bytes.length * from);
    return median(bytes.slice(first, Math.max(first + 1, Math.ceil(bytes.length * to)))) / 1e6;
  };
  return {
    stop: async () => {
      over = true;
      await watching;
      const [start, middle, end] = [megabytes(0, 0.1), megabytes(0.45, 0.55), megabytes(0.9, 1)];
      return { rssStartMb: start, rssMiddleMb: middle, rssEndMb: end, rssGrowthMb: end - middle };
    },
  };
}
