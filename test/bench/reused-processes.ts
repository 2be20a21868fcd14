import { type Child, startChild } from '../../bench/process/child.ts';
import type { Calls } from '../../bench/process/serve.ts';

/** A deployment's process takes two seconds of processor time to start; its parts take a tenth of that. */
const reused = 'pipeline/process.ts';

/** Starts processes of the bench. A deployment's process outlives a measurement, and serves the next. */
export function reusingProcesses(): { start: typeof startChild; end(): Promise<void> } {
  const idle: Child<{ stop: () => Promise<void> }>[] = [];
  return {
    start: <C extends Calls>(...[script, options]: Parameters<typeof startChild>): Child<C> => {
      if (script !== reused) return startChild<C>(script, options);
      const child = idle.pop() ?? startChild<{ stop: () => Promise<void> }>(script, options);
      let stopped = false;
      return {
        ...(child as unknown as Child<C>),
        stop: async () => {
          if (stopped) return;
          stopped = true;
          await child.call('stop', undefined).then(
            () => idle.push(child),
            () => child.stop(),
          );
        },
      };
    },
    end: async () => {
      await Promise.all(idle.splice(0).map((child) => child.stop()));
    },
  };
}
