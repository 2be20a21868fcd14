import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Log } from '../contract/log.ts';
import { notifyPolicy } from '../contract/retry-policy.ts';
import type { MonotonicClock } from './clock.ts';
import { httpLimits } from './http-limits.ts';
import type { Start } from './starts.ts';
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

/** Answers input that is no request, and ends the socket: nobody knows where the next request begins. */
export function answerClientErrors(
  count: (reason: AnswerReason) => void,
): (error: { code?: string }, socket: Socket) => void {
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    const reason = reasonOfClientError(error.code);
    count(reason);
    endWithAnswer(socket, reason);
  };
}

/** Writes an answer to the socket without waiting for its request, and ends it. */
export function endWithAnswer(socket: Socket, reason: AnswerReason): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = answerStatus[reason];
  const body = answerBody(status);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

function reasonOfClientError(code: string | undefined): AnswerReason {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'too-slow';
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers-too-large';
  return 'malformed';
}

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
