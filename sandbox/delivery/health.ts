/** The outcome of one attempt, from which health is derived. */
export interface Sending {
  readonly endpointId: string;
  readonly state: string;
  readonly at: string;
  readonly duplicate: boolean;
  /** Undefined if nothing was sent. */
  readonly answer: object | undefined;
}

/** Judges an endpoint by a batch of outcomes: whether it works, and since when it has failed. */
export interface Health {
  readonly endpointId: string;
  readonly succeeded: boolean;
  /** The first failure after the last success of the batch. */
  readonly failingSince: string | null;
  readonly lastFailure: string | null;
}

export function healthOf(outcomes: readonly Sending[]): Health[] {
  const health = new Map<string, Health>();
  for (const { endpointId, state, at, duplicate, answer } of outcomes) {
    if (duplicate || answer === undefined) continue;
    const before = health.get(endpointId);
    const succeeded = state === 'delivered';
    health.set(endpointId, {
      endpointId,
      succeeded: succeeded || (before?.succeeded ?? false),
      failingSince: succeeded ? null : (before?.failingSince ?? at),
      lastFailure: succeeded ? null : at,
    });
  }
  return [...health.values()];
}
