/**
 * One Ctrl-C may come twice: the terminal signals the whole group, and npm passes its own signal on to its
 * child. A signal within this time of the first counts as the same; nobody means to force so soon.
 */
const sameSignalMs = 1_000;

/**
 * Makes the function to call at each signal: it returns whether the signal is the first, a repetition, or a
 * second.
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
