import type { EventEmitter } from 'node:events';
import { signalsCounted } from './repeated-signal.ts';

/** Exit status of a program that Ctrl-C ended. */
export const interruptedStatus = 130;

/**
 * Makes a signal that aborts at Ctrl-C, until `forget`; a second Ctrl-C ends the program. The listener stays
 * after the first: without one the display, which restores the cursor, would kill the process.
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
