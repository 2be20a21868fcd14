import { limits } from '../../contract/limits.ts';
import type { Metrics } from '../../health/registry.ts';
import { type AnswerReason, answerStatus } from '../../receiver/answers.ts';
import type { GroupCommit, GroupFigures } from '../../receiver/group-commit.ts';
import type { ConfiguredSecrets } from '../../receiver/secrets.ts';
import type { Receiver } from '../../receiver/server.ts';

export interface ReceiverParts {
  readonly receiver: Receiver;
  readonly commit: GroupCommit;
  readonly secrets: ConfiguredSecrets;
  readonly ready: () => Promise<boolean>;
}

export interface ReceiverObserver {
  onAnswer(reason: AnswerReason, ms: number): void;
  onGroup(figures: GroupFigures): void;
  /** Reads the rest from the receiver's parts at each scrape. */
  watch(parts: ReceiverParts): void;
}

const results = ['durable', 'refused', 'unavailable'] as const;

/** Measures a receiver, and passes on its parts once it has begun. */
export function observeReceiver(metrics: Metrics, onBegun: (parts: ReceiverParts) => void): ReceiverObserver {
  const durations = metrics.histogram('metersync_receiver_answer_duration_seconds');
  const events = metrics.histogram('metersync_receiver_group_events');
  const starts = metrics.histogram('metersync_receiver_group_start_duration_seconds');
  const durationOf = Object.fromEntries(results.map((result) => [result, durations.labels(result)]));
  return {
    onAnswer(reason, ms) {
      const status = answerStatus[reason];
      durationOf[status === 204 ? 'durable' : status === 503 ? 'unavailable' : 'refused']?.observe(
        ms / 1_000,
      );
    },
    onGroup(figures) {
      const labels = { result: figures.durable ? 'durable' : 'unavailable' };
      events.observe(labels, figures.events);
      starts.observe(labels, figures.ms / 1_000);
    },
    watch(parts) {
      onBegun(parts);
      const { receiver, commit, secrets } = parts;
      metrics.read('metersync_receiver_answers_total', () =>
        Object.entries(receiver.counters).map(([reason, value]) => ({
          value,
          reason,
          code: String(answerStatus[reason as AnswerReason]),
        })),
      );
      metrics.read('metersync_receiver_waiting_events', () => [{ value: commit.waiting.events }]);
      metrics.read('metersync_receiver_waiting_limit_events', () => [{ value: limits.queueEventsMax }]);
      metrics.read('metersync_receiver_secrets_valid', () => [{ value: secrets.valid ? 1 : 0 }]);
    },
  };
}
