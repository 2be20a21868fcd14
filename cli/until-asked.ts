/** The service waits 15 s for an answer; whoever stops us rarely waits as long. */
const drainWithinMs = 9_500;

/**
 * Waits for SIGTERM or SIGINT, or until something fails by itself, then drains. A second signal, or draining that
 * takes too long, ends the process at once.
 */
export async function untilAsked(options: {
  readonly finished: readonly Promise<void>[];
  readonly onAsked: (signal: string) => void;
  readonly drain: () => Promise<void>;
}): Promise<void> {
  const asked = new Promise<void>((done) => {
    let before = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (before) process.exit(1);
      before = true;
      options.onAsked(signal);
      setTimeout(() => process.exit(1), drainWithinMs).unref();
      done();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
  try {
    await Promise.race([asked, ...options.finished]);
  } finally {
    await options.drain();
  }
}
