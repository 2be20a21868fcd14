import type { EventEmitter } from 'node:events';

/** Exit status of a program that Ctrl-C ended. */
export const interruptedStatus = 130;

/** A signal within this time of the first counts as the same: npm passes the terminal's Ctrl-C on again. */
const sameSignalMs = 1_000;

/** Makes the function to call at each signal: it says if that is the first, a repetition, or a second. */
export function signalsCounted(
  now: () => number = () => performance.now(),
): () => 'first' | 'same' | 'again' {
  let firstAt: number | undefined;
  return () => {
    if (firstAt === undefined) {
      firstAt = now();
      return 'first';
    }
    return now() - firstAt < sameSignalMs ? 'same' : 'again';
  };
}

/** Time for draining. The service waits 15 s for an answer, but process managers rarely wait that long. */
const drainWithinMs = 9_500;

/**
 * Runs until SIGTERM or SIGINT, or until a part fails, and then drains. It listens before anything begins. A
 * second signal, or draining that takes too long, ends the process at once.
 */
export async function untilAsked(
  process: Pick<EventEmitter, 'on'> & { exit(status: number): void },
  options: {
    /** Starts the parts; returns promises that end only by failing. */
    readonly begin: () => Promise<readonly Promise<void>[]>;
    readonly onAsked: (signal: string) => void;
    readonly drain: () => Promise<void>;
    /** Milliseconds of a monotonic clock. */
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
