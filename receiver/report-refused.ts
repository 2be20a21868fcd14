import type { Log } from '../contract/log.ts';
import { notifyPolicy } from '../contract/retry-policy.ts';
import type { AnswerCounters, AnswerReason } from './answers.ts';
import type { MonotonicClock } from './clock.ts';
import type { Start } from './start-group.ts';

/** Reasons to refuse a delivery that has all headers of a signature. Strangers do not send these headers. */
const reported = ['signature-wrong', 'timestamp-old', 'timestamp-new'] as const satisfies AnswerReason[];

/**
 * Reports each minute how many signed deliveries were refused, if any: a wrong secret is noticed this way.
 * The report is a group without events, so it survives an absence of Postgres. Counts that could not be sent
 * are added to the next report. Returns a function that ends the reports with a last one: a wrong secret is
 * corrected by a restart, which must not lose the count.
 */
export function reportRefused({
  counters,
  start,
  clock,
  log,
  name,
  everyMs = notifyPolicy.refusedEveryMs,
}: {
  readonly counters: Readonly<AnswerCounters>;
  readonly start: Start;
  readonly clock: MonotonicClock;
  readonly log: Log;
  /** Distinguishes this process from others. */
  readonly name: string;
  readonly everyMs?: number;
}): () => Promise<void> {
  const said = new Map<AnswerReason, number>();
  let reports = 0;
  const report = async (withinMs: number): Promise<void> => {
    const seen = reported.map((reason) => [reason, counters[reason]] as const);
    const fresh = seen
      .map(([reason, count]) => [reason, count - (said.get(reason) ?? 0)] as const)
      .filter(([, count]) => count > 0);
    if (fresh.length === 0) return;
    const workflowId = `refused/${name}/${++reports}`;
    try {
      const group = { events: [], refused: Object.fromEntries(fresh) };
      await start({ workflowId, group, withinMs });
      for (const [reason, count] of seen) said.set(reason, count);
    } catch (error) {
      log.warn({ err: error }, 'refused deliveries could not be reported');
    }
  };
  let ended = false;
  let cancel = (): void => {};
  let isReporting = false;
  const again = (): void => {
    isReporting = false;
    if (ended) return;
    cancel = clock.after(everyMs, () => {
      isReporting = true;
      void report(everyMs / 2).finally(again);
    });
  };
  again();
  return async () => {
    ended = true;
    cancel();
    // Two reports at the same time would count the same deliveries.
    if (!isReporting) await report(notifyPolicy.refusedLastMs);
  };
}
