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
