import type { EventEmitter } from 'node:events';
import { signalsCounted } from './repeated-signal.ts';

/** A program that Ctrl-C ended says so by this status. */
export const interruptedStatus = 130;

/**
 * A signal that aborts at Ctrl-C, until `forget`; a second one ends the program. The listener stays while it is told:
 * the display that restores the cursor would take a signal that nobody listens to any more for its own, and kill.
 */
export function untilInterrupted(
  process: Pick<EventEmitter, 'on' | 'off'> & { exit(status: number): void },
  now?: () => number,
): {
  readonly signal: AbortSignal;
  forget(): void;
} {
  const detached = new AbortController();
  const count = signalsCounted(now);
  const onInterrupt = (): void => {
    if (count() === 'again') process.exit(interruptedStatus);
    detached.abort();
  };
  process.on('SIGINT', onInterrupt);
  return { signal: detached.signal, forget: () => void process.off('SIGINT', onInterrupt) };
}
