/** Counts since the client was made. */
export interface RequestCounts {
  /** Requests sent, including retries. */
  readonly requests: number;
  readonly retries: number;
  /** Answers with status 429. */
  readonly busy: number;
  /** Bytes of bodies received, as they were on the wire. */
  readonly bytes: number;
}

export interface Counter {
  add(endpoint: string, count: Partial<RequestCounts>): void;
  /** Returns a copy, by the endpoint's name in the catalogue, or `ping`. */
  read(): Record<string, RequestCounts>;
}

export function createCounter(): Counter {
  const counts = new Map<string, RequestCounts>();
  return {
    add(endpoint, { requests = 0, retries = 0, busy = 0, bytes = 0 }) {
      const before = counts.get(endpoint) ?? { requests: 0, retries: 0, busy: 0, bytes: 0 };
      counts.set(endpoint, {
        requests: before.requests + requests,
        retries: before.retries + retries,
        busy: before.busy + busy,
        bytes: before.bytes + bytes,
      });
    },
    read: () => Object.fromEntries(counts),
  };
}
