import type { FailureCode } from '../contract/failures.ts';
import { requestPolicy } from '../contract/retry-policy.ts';

/**
 * Maps an HTTP status to a failure; null for 200. Error bodies have no documented shape (service.md 7).
 * Redirects are refused: a new address belongs in the settings, and no answer may send the key elsewhere.
 */
export function failureOfStatus(status: number): FailureCode | null {
  if (status === 200) return null;
  if (status === 401) return 'SERVICE_KEY_REFUSED';
  if (status === 403) return 'SERVICE_ACCESS_DENIED';
  if (status === 404 || status === 410) return 'SERVICE_NOT_FOUND';
  if (status === 408) return 'SERVICE_UNREACHABLE';
  if (status === 429) return 'SERVICE_BUSY';
  if (status >= 500) return 'SERVICE_ERROR';
  if (status >= 300) return 'SERVICE_REQUEST_REFUSED';
  // 204, 206 and the like do not answer a read.
  return 'SERVICE_ANSWER_UNREADABLE';
}

/** Codes of undici, Node's net, tls and zlib for an answer that is not HTTP or contradicts its headers. */
const unreadable = /^(HPE_|Z_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_EXCEEDED|ERR_BUFFER_TOO_LARGE)/;
/** Codes for a request whose client was closed. */
const ours = /^UND_ERR_(DESTROYED|CLOSED|ABORTED)$/;
/** Codes for a request that cannot be sent. */
const unsendable = /^(UND_ERR_INVALID_ARG|ERR_INVALID_CHAR|ERR_INVALID_URL|ERR_UNESCAPED_CHARACTERS)$/;
const network =
  /^(E[A-Z0-9]+|EAI_\w+|UND_ERR_\w+|ERR_(TLS|SSL|STREAM_PREMATURE)_\w+|[A-Z_]*CERT[A-Z_]*|UNABLE_TO_\w+)$/;

/** Maps an error to a failure by its code; undefined for a defect of metersync, which must not be retried. */
export function failureOfError(error: unknown): FailureCode | undefined {
  // Only some versions of undici give parser errors a code.
  if (error instanceof Error && error.name === 'HTTPParserError') return 'SERVICE_ANSWER_UNREADABLE';
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (typeof code !== 'string' || ours.test(code)) return undefined;
  if (unreadable.test(code)) return 'SERVICE_ANSWER_UNREADABLE';
  if (unsendable.test(code)) return 'SERVICE_REQUEST_REFUSED';
  return network.test(code) ? 'SERVICE_UNREACHABLE' : undefined;
}

/**
 * Reads Retry-After, in seconds or as an HTTP date, which is compared with the answer's own Date, if any, so
 * that clock skew does not matter. Returns milliseconds, 0 for a past date; undefined if missing or invalid.
 */
export function retryAfterMs(answer: {
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  readonly now: number;
}): number | undefined {
  const text = answer.retryAfter?.trim();
  if (text === undefined || text === '') return undefined;
  if (/^\d+(\.\d+)?$/.test(text))
    return Math.min(Math.ceil(Number(text) * 1000), requestPolicy.retryAfterMaxMs);
  // Date.parse accepts more than HTTP dates: it reads "-5" as a year.
  const moment = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(moment)) return undefined;
  const sentAt = answer.date === undefined ? Number.NaN : Date.parse(answer.date);
  const from = Number.isNaN(sentAt) ? answer.now : sentAt;
  return Math.min(Math.max(moment - from, 0), requestPolicy.retryAfterMaxMs);
}
