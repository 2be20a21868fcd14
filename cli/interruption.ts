import type { EventEmitter } from 'node:events';

/** A program that Ctrl-C ended says so by this status. */
export const interruptedStatus = 130;

/**
 * A signal that aborts at Ctrl-C, until `forget`; a second one ends the program. The listener stays while it is told:
 * the display that restores the cursor would take a signal that nobody listens to any more for its own, and kill.
 */
export function untilInterrupted(
  process: Pick<EventEmitter, 'on' | 'off'> & { exit(status: number): void },
): {
  readonly signal: AbortSignal;
  forget(): void;
} {
  const detached = new AbortController();
  const onInterrupt = (): void => {
    if (detached.signal.aborted) process.exit(interruptedStatus);
    detached.abort();
  };
  process.on('SIGINT', onInterrupt);
  return { signal: detached.signal, forget: () => void process.off('SIGINT', onInterrupt) };
}
