/** A part that runs until it is stopped; `finished` rejects when it fails by itself. */
export interface Running {
  readonly finished: Promise<void>;
  /** Drains: what was accepted is answered or finished or handed over. */
  stop(): Promise<void>;
}

/** Whether what a part needs has been there since the process began. */
export interface Arrival {
  isThere(): boolean;
  /** Resolves when it is there, never after `stop`. @throws Error that says why it will not be */
  readonly arrived: Promise<void>;
  stop(): Promise<void>;
}

/** Several of them: there when all are. */
export const allOf = (arrivals: readonly Arrival[]): Arrival => {
  const arrived = Promise.all(arrivals.map((one) => one.arrived)).then(() => {});
  arrived.catch(() => {});
  return {
    isThere: () => arrivals.every((one) => one.isThere()),
    arrived,
    stop: async () => {
      await Promise.all(arrivals.map((one) => one.stop()));
    },
  };
};

/** A part that is started when what it needs is there, which may be never. */
export function whenThere(arrival: Arrival, start: () => Promise<Running>): Running {
  const started = arrival.arrived.then(start);
  const finished = started.then((part) => part.finished);
  // Whoever waits for it is told; when it fails while all is stopped nobody does.
  finished.catch(() => {});
  return {
    finished,
    stop: async () => {
      await arrival.stop();
      if (!arrival.isThere()) return;
      const [part] = await Promise.allSettled([started]);
      if (part.status === 'fulfilled') await part.value.stop();
    },
  };
}
