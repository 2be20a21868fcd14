import type { EventEmitter } from 'node:events';
import { signalsCounted } from './repeated-signal.ts';

/** The service waits 15 s for an answer; whoever stops us rarely waits as long. */
const drainWithinMs = 9_500;

/**
 * Begins what runs until SIGTERM or SIGINT, or until something of it fails by itself, then drains. It listens before
 * anything begins: whoever sees that something runs can already ask it to stop. A second signal, but for
 * the same one once more, or draining that takes too long, ends the process at once.
 */
export async function untilAsked(
  process: Pick<EventEmitter, 'on'> & { exit(status: number): void },
  options: {
    /** Gives what ends only by failing. */
    readonly begin: () => Promise<readonly Promise<void>[]>;
    readonly onAsked: (signal: string) => void;
    readonly drain: () => Promise<void>;
    /** Milliseconds of a clock that only goes forward. */
    readonly now?: () => number;
  },
): Promise<void> {
  const asked = new Promise<void>((done) => {
    const count = signalsCounted(options.now);
    const onSignal = (signal: NodeJS.Signals) => {
      const counted = count();
      if (counted === 'same') return;
      if (counted === 'again') return process.exit(1);
      options.onAsked(signal);
      setTimeout(() => process.exit(1), drainWithinMs).unref();
      done();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
  const failed = async () => await Promise.race([asked, ...(await options.begin())]);
  try {
    await Promise.race([asked, failed()]);
  } finally {
    await options.drain();
  }
}
