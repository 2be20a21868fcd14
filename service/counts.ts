/** What a client did, since it was made. */
export interface RequestCounts {
  /** Requests sent, retries among them. */
  readonly requests: number;
  readonly retries: number;
  /** Answers 429. */
  readonly busy: number;
  /** Bytes of bodies received, as they were on the wire. */
  readonly bytes: number;
}

export interface Counter {
  add(endpoint: string, count: Partial<RequestCounts>): void;
  /** By name of the endpoint in the catalogue, and `ping`; a copy. */
  read(): Record<string, RequestCounts>;
}

export function createCounter(): Counter {
  const counts = new Map<string, RequestCounts>();
  return {
    add(endpoint, { requests = 0, retries = 0, busy = 0, bytes = 0 }) {
      const so = counts.get(endpoint) ?? { requests: 0, retries: 0, busy: 0, bytes: 0 };
      counts.set(endpoint, {
        requests: so.requests + requests,
        retries: so.retries + retries,
        busy: so.busy + busy,
        bytes: so.bytes + bytes,
      });
    },
    read: () => Object.fromEntries(counts),
  };
}
