/** Exit status of a program that Ctrl-C ended. */
export const interruptedStatus = 130;

/**
 * One Ctrl-C may come twice: from the terminal, and from npm, which passes its own signal on. A signal within
 * this time of the first counts as the same.
 */
const sameSignalMs = 1_000;

/**
 * Makes the function to call at each signal: it returns whether the signal is the first, a repetition of the
 * first, or a second signal.
 */
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
