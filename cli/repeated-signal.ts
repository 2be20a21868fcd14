/**
 * One Ctrl-C may come twice: the terminal signals the whole group, and npm passes its own on to its child. What comes within
 * this time of the first is the same one; nobody means to force in so short a time.
 */
export const sameSignalMs = 1_000;

/** Makes the function that is told of each signal, and says whether it is the first, the same once more, or a second one. */
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
