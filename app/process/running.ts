/** A part that runs until it is stopped. `finished` rejects if it fails. */
export interface Running {
  readonly finished: Promise<void>;
  /** Drains: accepted work is answered, finished or handed over. */
  stop(): Promise<void>;
}

/** Whether a server that a part needs was reachable at any time since the process began. */
export interface ServerWait {
  isThere(): boolean;
  /** Resolves when the server is there, never after `stop`. @throws Error that says why it will not be */
  readonly arrived: Promise<void>;
  stop(): Promise<void>;
}

/** Joins several waits. The joined wait ends when all servers are there. */
export const allOf = (waits: readonly ServerWait[]): ServerWait => {
  const arrived = Promise.all(waits.map((wait) => wait.arrived)).then(() => {});
  arrived.catch(() => {});
  return {
    isThere: () => waits.every((wait) => wait.isThere()),
    arrived,
    stop: async () => {
      await Promise.all(waits.map((wait) => wait.stop()));
    },
  };
};

/** Starts a part once the server that it needs is there, which may be never. */
export function whenThere(wait: ServerWait, start: () => Promise<Running>): Running {
  const started = wait.arrived.then(start);
  const finished = started.then((part) => part.finished);
  // Callers that wait get the error; a failure while everything stops must not be an unhandled rejection.
  finished.catch(() => {});
  return {
    finished,
    stop: async () => {
      await wait.stop();
      if (!wait.isThere()) return;
      const [part] = await Promise.allSettled([started]);
      if (part.status === 'fulfilled') await part.value.stop();
    },
  };
}
