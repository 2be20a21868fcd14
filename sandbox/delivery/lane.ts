import { secondsToMicros, toText } from '../time.ts';
import { type Disturbance, type Fate, fateOf, shuffled } from './disturbance.ts';
import type { Claimed, Outcome } from './ledger.ts';
import type { Answer, Sender } from './sender.ts';

/** How many deliveries are claimed together. `shuffle` mixes only deliveries that are claimed together. */
const claimSize = 256;

interface LaneDependencies {
  readonly endpointId: string;
  readonly sender: Sender;
  readonly concurrency: number;
  readonly claim: (limit: number) => Promise<Claimed[]>;
  readonly disturbance: () => Disturbance;
  /** The service's time. */
  readonly now: () => bigint;
  /** The time that signatures contain. */
  readonly signingTime: () => Date;
  /** Seconds to wait after attempt `number` has failed, or undefined after the last attempt. */
  readonly retryDelay: (number: number) => number | undefined;
  /** Resolves once the outcome is recorded. Until then the delivery counts as in flight. */
  readonly record: (outcome: Outcome) => Promise<void>;
  /** Called when nothing is due any more. */
  readonly idle: () => void;
  readonly failed: (error: unknown) => void;
}

/** Sends the deliveries of one endpoint, several at a time and in no guaranteed order. */
export interface Lane {
  /** Looks for due deliveries. */
  wake(): void;
  readonly inFlight: () => number;
  /** Starts no further deliveries. `unsent` resolves at once, or when a claim under way has ended. */
  stop(): { readonly unsent: Promise<readonly Claimed[]>; readonly ended: Promise<void> };
}

export function createLane(dependencies: LaneDependencies): Lane {
  const { endpointId, sender, concurrency, claim, disturbance, now, signingTime } = dependencies;
  const { retryDelay, record, idle, failed } = dependencies;
  const queue: Claimed[] = [];
  let inFlight = 0;
  let claiming = false;
  /** Whether the lane was woken during a claim, which may then lack newer deliveries. */
  let wokenAgain = false;
  let stopped = false;
  const unsent = Promise.withResolvers<readonly Claimed[]>();
  const ended = Promise.withResolvers<void>();

  const refill = async () => {
    claiming = true;
    try {
      do {
        wokenAgain = false;
        const claimed = await claim(claimSize);
        queue.push(...(disturbance().shuffle ? shuffled(claimed, claimed[0]?.id ?? '') : claimed));
        if (claimed.length === 0 && !wokenAgain) idle();
      } while (wokenAgain && queue.length === 0 && !stopped);
    } catch (error) {
      failed(error);
    } finally {
      claiming = false;
    }
    pump();
  };

  const pump = () => {
    while (!stopped && inFlight < concurrency) {
      const next = queue.shift();
      if (next === undefined) break;
      start(next);
    }
    if (!stopped || claiming) return;
    unsent.resolve(queue);
    if (inFlight === 0) ended.resolve();
  };

  const start = (claimed: Claimed) => {
    inFlight++;
    deliver(claimed)
      .catch(failed)
      .finally(() => {
        inFlight--;
        if (!stopped && !claiming && queue.length < concurrency) void refill();
        pump();
      });
  };

  const deliver = async (claimed: Claimed) => {
    const fate = claimed.attempts === 0 ? fateOf(disturbance(), claimed.id) : untouched;
    if (fate.dropped) return record({ ...outcomeOf(claimed, undefined), state: 'dropped' });
    const copy = async () => record({ ...outcomeOf(claimed, await post(claimed)), duplicate: true });
    const beside = fate.duplicate === 'beside' ? copy() : undefined;
    await record(outcomeOf(claimed, await post(claimed)));
    return fate.duplicate === 'behind' ? copy() : beside;
  };

  /** Any 2xx is success (service.md 4.1.2). The schedule counts from the end of a failure (6.4). */
  const outcomeOf = (claimed: Claimed, answer: Answer | undefined): Outcome => {
    const number = claimed.attempts + 1;
    const at = now();
    const common = { deliveryId: claimed.id, endpointId, at: toText(at), answer, duplicate: false, number };
    const status = answer?.status ?? 0;
    if (status >= 200 && status < 300) return { ...common, state: 'delivered', dueAt: null };
    const delay = retryDelay(number);
    if (delay === undefined) return { ...common, state: 'failed', dueAt: null };
    return { ...common, state: 'waiting', dueAt: toText(at + secondsToMicros(delay)) };
  };

  const post = ({ eventId, payload }: Claimed) =>
    sender.send({ id: eventId, payload, signedAt: signingTime() });

  return {
    wake() {
      wokenAgain = true;
      if (!claiming && !stopped && queue.length < concurrency) void refill();
    },
    inFlight: () => inFlight,
    stop() {
      stopped = true;
      pump();
      return { unsent: unsent.promise, ended: ended.promise };
    },
  };
}

const untouched: Fate = { dropped: false, duplicate: 'none' };

/** service.md 6.4: seconds before each attempt, counted from the failure of the previous attempt. */
const attemptDelaysSeconds = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000] as const;

/**
 * Seconds from the failure of attempt `number` to the next, spread by up to `jitter` (0.2: ±20 %), so
 * that messages that failed together do not return together. `draw` is in [0, 1). Undefined after the last.
 */
export function retryDelaySeconds(number: number, jitter: number, draw: number): number | undefined {
  const delay = attemptDelaysSeconds[number];
  return delay === undefined ? undefined : delay * (1 + jitter * (2 * draw - 1));
}
