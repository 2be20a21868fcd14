import type { FailureCode } from '../contract/failures.ts';

/**
 * The failure that an HTTP status stands for, null for 200. Error bodies have no known shape (seed 7), so the
 * status alone decides. Redirects are refused: an API that moved is a matter of settings, and the key must not
 * follow an address that an answer names.
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
  // 204, 206 and the like are no answer to a read.
  return 'SERVICE_ANSWER_UNREADABLE';
}

/** What undici, Node's net and tls and zlib call an answer that came and is not HTTP, or not what it says. */
const unreadable = /^(HPE_|Z_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_EXCEEDED|ERR_BUFFER_TOO_LARGE)/;
/** The client was closed under the request. */
const ours = /^UND_ERR_(DESTROYED|CLOSED|ABORTED)$/;
/** The request could not be put on the wire as it is. */
const unsendable = /^(UND_ERR_INVALID_ARG|ERR_INVALID_CHAR|ERR_INVALID_URL|ERR_UNESCAPED_CHARACTERS)$/;
const network =
  /^(E[A-Z0-9]+|EAI_\w+|UND_ERR_\w+|ERR_(TLS|SSL|STREAM_PREMATURE)_\w+|[A-Z_]*CERT[A-Z_]*|UNABLE_TO_\w+)$/;

/**
 * The failure that a thrown error stands for, by its code. Undefined for what is not the service's doing (a
 * defect of ours): it must surface as itself, not be retried as a network error.
 */
export function failureOfError(error: unknown): FailureCode | undefined {
  // undici's parser gives its errors a code in some versions alone.
  if (error instanceof Error && error.name === 'HTTPParserError') return 'SERVICE_ANSWER_UNREADABLE';
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (typeof code !== 'string' || ours.test(code)) return undefined;
  if (unreadable.test(code)) return 'SERVICE_ANSWER_UNREADABLE';
  if (unsendable.test(code)) return 'SERVICE_REQUEST_REFUSED';
  return network.test(code) ? 'SERVICE_UNREACHABLE' : undefined;
}

/** The longest wait that is taken from the service's word: a slip in a header must not stop a sync for days. */
export const retryAfterMaxMs = 60 * 60 * 1000;

/**
 * Reads Retry-After: seconds, or an HTTP date. A date is measured from the answer's own Date where it has one,
 * so that a clock that is off here or there changes nothing. Milliseconds, 0 when the moment has passed;
 * undefined when the header is missing or says nothing.
 */
export function retryAfterMs(answer: {
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  readonly now: number;
}): number | undefined {
  const text = answer.retryAfter?.trim();
  if (text === undefined || text === '') return undefined;
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Math.ceil(Number(text) * 1000), retryAfterMaxMs);
  // Date.parse takes much that is no HTTP date: "-5" is a year to it.
  const moment = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(moment)) return undefined;
  const said = answer.date === undefined ? Number.NaN : Date.parse(answer.date);
  const from = Number.isNaN(said) ? answer.now : said;
  return Math.min(Math.max(moment - from, 0), retryAfterMaxMs);
}
