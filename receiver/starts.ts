import type { EventGroup } from '../contract/event.ts';
import type { Log } from '../contract/log.ts';
import { startPolicy } from '../contract/retry-policy.ts';
import type { MonotonicClock } from './clock.ts';

/** One attempt to start `applyEvents` for a group. */
export interface StartRequest {
  /** The same for every attempt to start the group. */
  readonly workflowId: string;
  readonly group: EventGroup;
  /** Deadline on the wire, in milliseconds from now. After that nobody waits for this attempt. */
  readonly withinMs: number;
}

/** Starts the workflow of a group. Resolves if Temporal has it on disk or knows its id, or else rejects. */
export type Start = (request: StartRequest) => Promise<void>;

/**
 * Starts one group, attempt after attempt with the same workflow id, until an attempt resolves or the time is
 * over. An attempt that timed out still counts if it resolves later. Never rejects.
 * @param until when the last of the group's events has to be answered, on `clock`
 * @returns whether the group is durable, and how many attempts were made
 */
export async function startGroup({
  start,
  workflowId,
  group,
  until,
  startDeadlineMs,
  clock,
  log,
}: {
  start: Start;
  workflowId: string;
  group: EventGroup;
  until: number;
  startDeadlineMs: number;
  clock: MonotonicClock;
  log: Log;
}): Promise<{ durable: boolean; attempts: number }> {
  const started = Promise.withResolvers<'started'>();
  for (let attempts = 1; ; attempts += 1) {
    const withinMs = Math.min(startDeadlineMs, until - clock.now());
    if (withinMs <= 0) {
      log.error(
        { workflowId, events: group.events.length, attempts: attempts - 1 },
        'events could not be stored in time: the service has to deliver them again',
      );
      return { durable: false, attempts: attempts - 1 };
    }
    const failure = Promise.withResolvers<unknown>();
    const cancel = clock.after(withinMs, () => failure.resolve(`no answer within ${withinMs} ms`));
    attempt(start, { workflowId, group, withinMs }).then(() => started.resolve('started'), failure.resolve);
    const outcome = await Promise.race([started.promise, failure.promise]);
    cancel();
    if (outcome === 'started') return { durable: true, attempts };
    const problem = outcome instanceof Error ? outcome.message : String(outcome);
    log.warn({ workflowId, events: group.events.length, attempts, problem }, 'events not started yet');
    const pauseMs = Math.min(
      startPolicy.pauseFirstMs * 2 ** (attempts - 1),
      startPolicy.pauseMaxMs,
      until - clock.now(),
    );
    const late = await Promise.race([started.promise, pause(clock, pauseMs)]);
    if (late === 'started') return { durable: true, attempts };
  }
}

/** Rejects if the start function throws, so that this counts as a failed attempt like any other. */
async function attempt(start: Start, request: StartRequest): Promise<void> {
  await start(request);
}

function pause(clock: MonotonicClock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(Math.max(0, ms), resolve);
  });
}

/** Watches whether Temporal takes events: while its disk is full, only starts fail. `now` only grows. */
export function watchStarts(start: Start, now: () => number): { readonly start: Start; fail(): boolean } {
  let failedInARow = 0;
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    start: async (request) => {
      try {
        await start(request);
        failedInARow = 0;
      } catch (error) {
        failedInARow += 1;
        failedAt = now();
        throw error;
      }
    },
    /**
     * Whether the last starts failed, which counts only for a while: a load balancer sends nothing to a
     * receiver that is not ready, so no start could succeed. After that time, one further failure is enough.
     */
    fail: () => failedInARow >= startPolicy.failedInARow && now() - failedAt < startPolicy.failForMs,
  };
}
