import { fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { FloodFigures, FloodKind } from './flood-process.ts';

/** Strangers in their own process, so that they do not slow down the process that measures. */
export interface Flood {
  figures(): Promise<FloodFigures>;
  end(): Promise<void>;
}

/** Opens connections to a receiver that send what `kind` says, and reopens each when it ends. */
export function startFlood(port: number, connections: number, kind: FloodKind): Flood {
  const script = resolve(import.meta.dirname, 'flood-process.ts');
  const child = fork(script, [String(port), String(connections), kind], { execArgv: [] });
  const ended = once(child, 'exit');
  const failed = ended.then(([status]) => Promise.reject(new Error(`the flood ended: ${status}`)));
  failed.catch(() => {});
  return {
    figures: async () => {
      const answered = once(child, 'message');
      child.send('figures');
      const [figures] = await Promise.race([answered, failed]);
      return figures as FloodFigures;
    },
    end: async () => {
      // The process ends when its channel closes.
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
