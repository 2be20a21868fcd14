import type { DeliveredEvent } from '../contract/event.ts';
import { limits as contractLimits } from '../contract/limits.ts';
import type { Log } from '../contract/log.ts';
import type { MonotonicClock } from './clock.ts';
import { encodeEvent, sizeOfNextGroup, workflowIdOfGroup } from './group.ts';
import { type Start, startGroup } from './starts.ts';

/** `durable` is on Temporal's disk, `unavailable` not in time; `busy` and `closing` were not accepted. */
export type CommitResult = 'durable' | 'unavailable' | 'busy' | 'closing';

/** One finished group, for measurements. */
export interface GroupFigures {
  readonly events: number;
  readonly bytes: number;
  readonly attempts: number;
  readonly durable: boolean;
  /** Time from the first attempt to the end. */
  readonly ms: number;
}

export type GroupCommitLimits = Readonly<
  Record<
    | 'groupEventsMax'
    | 'groupBytesMax'
    | 'groupStartsInFlight'
    | 'groupLingerBelowEvents'
    | 'groupLingerQuietMs'
    | 'groupLingerMs'
    | 'queueEventsMax'
    | 'queueBytesMax'
    | 'answerWithinMs'
    | 'startDeadlineMs',
    number
  >
>;

export interface GroupCommit {
  /** Takes an event that arrived at `arrivedAt`, or now. Never rejects; resolves within `answerWithinMs`. */
  accept(event: DeliveredEvent, arrivedAt?: number): Promise<CommitResult>;
  /** Stops accepting events; resolves when every accepted event is answered. */
  drain(): Promise<void>;
  /** Number of events that wait for their answer, and their encoded bytes. */
  readonly waiting: { readonly events: number; readonly bytes: number };
}

interface Waiting {
  readonly event: DeliveredEvent;
  readonly bytes: number;
  readonly deadline: number;
  readonly answer: Promise<CommitResult>;
  readonly resolve: (answer: CommitResult) => void;
}

/** A group that waits a little for more events: until there are `enough` events, or the time is `until`. */
interface Linger {
  readonly enough: number;
  readonly until: number;
  readonly cancel: () => void;
}

/**
 * Commits events in groups: many events with one durable start. While no start is in flight, an event is sent
 * at once. While one is, events gather, with those that just answered senders send next. The slower the
 * starts are, the larger the groups become, and a lone event never waits.
 */
export function createGroupCommit(dependencies: {
  start: Start;
  clock: MonotonicClock;
  log: Log;
  limits?: GroupCommitLimits;
  onGroup?: (figures: GroupFigures) => void;
}): GroupCommit {
  return new Commit(dependencies);
}

const busy = Promise.resolve<CommitResult>('busy');
const closing = Promise.resolve<CommitResult>('closing');
const unavailable = Promise.resolve<CommitResult>('unavailable');

class Commit implements GroupCommit {
  readonly #start: Start;
  readonly #clock: MonotonicClock;
  readonly #log: Log;
  readonly #limits: GroupCommitLimits;
  readonly #onGroup: (figures: GroupFigures) => void;
  /** Events in flight and events that gather, by event id, in the order of acceptance. */
  readonly #unanswered = new Map<string, Waiting>();
  /** The unanswered events that were not sent yet, in the same order. */
  #gathering: Waiting[] = [];
  #bytes = 0;
  #inFlight = 0;
  #leaving = false;
  #lingering: Linger | undefined;
  #expiry: { readonly at: number; readonly cancel: () => void } | undefined;
  #closing = false;
  readonly #drained = Promise.withResolvers<void>();

  constructor({
    start,
    clock,
    log,
    limits = contractLimits,
    onGroup = () => {},
  }: Parameters<typeof createGroupCommit>[0]) {
    this.#start = start;
    this.#clock = clock;
    this.#log = log;
    this.#limits = limits;
    this.#onGroup = onGroup;
  }

  get waiting(): { events: number; bytes: number } {
    return { events: this.#unanswered.size, bytes: this.#bytes };
  }

  accept(event: DeliveredEvent, arrivedAt: number = this.#clock.now()): Promise<CommitResult> {
    if (this.#closing) return closing;
    const same = this.#unanswered.get(event.id);
    if (same !== undefined) return same.answer;
    if (this.#unanswered.size >= this.#limits.queueEventsMax) return busy;
    const encoded = encodeEvent(event);
    if (this.#bytes + encoded.bytes > this.#limits.queueBytesMax) return busy;
    const deadline = arrivedAt + this.#limits.answerWithinMs;
    if (deadline <= this.#clock.now()) return unavailable;
    const { promise: answer, resolve } = Promise.withResolvers<CommitResult>();
    const waiting = { ...encoded, deadline, answer, resolve };
    this.#unanswered.set(event.id, waiting);
    this.#gathering.push(waiting);
    this.#bytes += encoded.bytes;
    this.#expireAt(deadline);
    this.#leaveSoon();
    return answer;
  }

  drain(): Promise<void> {
    this.#closing = true;
    this.#endLinger();
    if (this.#unanswered.size === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  /** Sends the gathered events at the end of the turn: events of one read of the network share a start. */
  #leaveSoon(): void {
    if (this.#lingering !== undefined) {
      this.#linger(this.#lingering.enough, this.#lingering.until);
      return;
    }
    if (this.#leaving || this.#inFlight >= this.#limits.groupStartsInFlight) return;
    this.#leaving = true;
    this.#clock.soon(() => {
      this.#leaving = false;
      this.#leave();
    });
  }

  /** Waits a little longer for more events, unless there are enough. */
  #linger(enough: number, until: number): void {
    this.#lingering?.cancel();
    const ms = Math.min(this.#limits.groupLingerQuietMs, until - this.#clock.now());
    // One turn later, because events that came meanwhile may not have been handled yet.
    const cancel = this.#clock.after(Math.max(0, ms), () =>
      this.#clock.soon(() => {
        if (this.#lingering === lingering) this.#endLinger();
      }),
    );
    const lingering: Linger = { enough, until, cancel };
    this.#lingering = lingering;
    if (this.#gathering.length >= enough) this.#endLinger();
  }

  #endLinger(): void {
    if (this.#lingering === undefined) return;
    this.#lingering.cancel();
    this.#lingering = undefined;
    this.#leaveSoon();
  }

  #leave(): void {
    while (this.#inFlight < this.#limits.groupStartsInFlight && this.#gathering.length > 0) {
      const group = this.#gathering.splice(0, sizeOfNextGroup(this.#gathering, this.#limits));
      this.#inFlight += 1;
      void this.#commit(group as [Waiting, ...Waiting[]]);
    }
  }

  async #commit(group: readonly [Waiting, ...Waiting[]]): Promise<void> {
    const startedAt = this.#clock.now();
    const events = group.map(({ event }) => event) as [DeliveredEvent, ...DeliveredEvent[]];
    const { durable, attempts } = await startGroup({
      start: this.#start,
      workflowId: workflowIdOfGroup(events),
      group: { events },
      // Until the latest deadline. Each event is answered at its own deadline.
      until: Math.max(...group.map(({ deadline }) => deadline)),
      startDeadlineMs: this.#limits.startDeadlineMs,
      clock: this.#clock,
      log: this.#log,
    });
    this.#inFlight -= 1;
    for (const waiting of group) this.#settle(waiting, durable ? 'durable' : 'unavailable');
    this.#goOn(durable ? group.length : 0);
    this.#onGroup({
      events: events.length,
      bytes: group.reduce((sum, { bytes }) => sum + bytes, 0),
      attempts,
      durable,
      ms: this.#clock.now() - startedAt,
    });
  }

  /** Sends the gathered events. Before that, it waits for as many more events as were just answered. */
  #goOn(answered: number): void {
    const gathered = this.#gathering.length;
    const enough = Math.min(gathered + answered, this.#limits.groupLingerBelowEvents);
    if (gathered === 0 || gathered >= enough || this.#closing || this.#inFlight > 0) {
      this.#leave();
      return;
    }
    this.#linger(enough, this.#clock.now() + this.#limits.groupLingerMs);
  }

  #settle(waiting: Waiting, answer: CommitResult): void {
    // The event was answered at its deadline, and may have been delivered and accepted again since.
    if (this.#unanswered.get(waiting.event.id) !== waiting) return;
    this.#unanswered.delete(waiting.event.id);
    this.#bytes -= waiting.bytes;
    waiting.resolve(answer);
    if (this.#closing && this.#unanswered.size === 0) this.#drained.resolve();
  }

  /** Keeps one timer, for the deadline that comes first. */
  #expireAt(deadline: number): void {
    if (this.#expiry !== undefined && this.#expiry.at <= deadline) return;
    this.#expiry?.cancel();
    const cancel = this.#clock.after(Math.max(0, deadline - this.#clock.now()), () => {
      this.#expiry = undefined;
      this.#expire();
    });
    this.#expiry = { at: deadline, cancel };
  }

  #expire(): void {
    const now = this.#clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const waiting of this.#unanswered.values()) {
      if (waiting.deadline <= now) this.#settle(waiting, 'unavailable');
      else next = Math.min(next, waiting.deadline);
    }
    this.#gathering = this.#gathering.filter((waiting) => waiting.deadline > now);
    if (next < Number.POSITIVE_INFINITY) this.#expireAt(next);
  }
}
