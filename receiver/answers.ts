import { STATUS_CODES } from 'node:http';
import type { Log } from '../contract/log.ts';
import { httpLimits } from './http-limits.ts';
import type { RefusalReason } from './verify.ts';

/**
 * Every answer, by its reason. Only the status is sent, because the reason would help a forger. No answer
 * redirects, repeats anything of the request, or is a 410, which would disable the endpoint.
 */
export const answerStatus = {
  durable: 204,
  encoded: 415,
  'headers-missing': 401,
  'headers-mixed': 401,
  'header-repeated': 401,
  'id-malformed': 401,
  'timestamp-malformed': 401,
  'timestamp-old': 401,
  'timestamp-new': 401,
  'signatures-too-many': 401,
  'signature-malformed': 401,
  'signature-wrong': 401,
  'body-not-utf8': 401,
  /** Temporal did not take the event within the time. */
  unavailable: 503,
  /** Too many events are waiting, or this socket or body had to make room for others. */
  busy: 503,
  /** The receiver is being stopped. */
  closing: 503,
  'too-large': 413,
  /** The body is chunked, which senders of webhooks do not do. Only a body with a declared length is read. */
  'length-required': 411,
  'method-not-allowed': 405,
  'not-found': 404,
  /** Not HTTP, or ambiguous. */
  malformed: 400,
  /** The socket ended inside a body. */
  'cut-short': 400,
  'headers-too-large': 431,
  /** Headers or body did not come within their time. */
  'too-slow': 408,
  /** A defect of metersync: counted and logged. */
  failed: 503,
} as const satisfies Record<RefusalReason, 401 | 415> & Record<string, number>;

export type AnswerReason = keyof typeof answerStatus;

/** The body of every answer except 204: enough for a person with curl. */
export function answerBody(status: number): string {
  return JSON.stringify({ error: STATUS_CODES[status] ?? 'error' });
}

/** How many answers there were, by reason, since the process started. */
export type AnswerCounters = Record<AnswerReason, number>;

/** Counts answers, and logs refusals once per minute and reason, so that strangers cannot fill the log. */
export function createAnswerCounters({ now, log }: { now: () => number; log: Log }): {
  counters: Readonly<AnswerCounters>;
  count: (reason: AnswerReason) => void;
} {
  const reasons = Object.keys(answerStatus) as AnswerReason[];
  const counters = Object.fromEntries(reasons.map((reason) => [reason, 0])) as AnswerCounters;
  const quietUntil = new Map<AnswerReason, number>();
  return {
    counters,
    count(reason) {
      counters[reason] += 1;
      if (reason === 'durable' || now() < (quietUntil.get(reason) ?? 0)) return;
      quietUntil.set(reason, now() + httpLimits.logIntervalMs);
      log.warn({ reason, status: answerStatus[reason], soFar: counters[reason] }, 'webhooks refused');
    },
  };
}
