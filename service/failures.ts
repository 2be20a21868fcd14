import { Failure, type FailureCode } from '../contract/failures.ts';
import { jsonStopsAt } from '../contract/json.ts';
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

/** Adds what was requested to a failure. Returns any other error, a defect of metersync, unchanged. */
export function withRequest(error: unknown, request: string): unknown {
  if (error instanceof Failure) {
    const { code, status, retryAfterMs: wait } = error;
    return new Failure(code, `${request}: ${error.message}`, { status, retryAfterMs: wait });
  }
  const code = failureOfError(error);
  if (code === undefined || !(error instanceof Error)) return error;
  return new Failure(code, `${request}: ${error.message}`, { cause: withoutAnswer(error) });
}

/** Copies a parser's error without its other properties, which may contain the answer. */
function withoutAnswer(error: Error): Error {
  const plain = new Error(error.message);
  if (error.stack !== undefined) plain.stack = error.stack;
  return Object.assign(plain, { name: error.name, code: (error as { code?: unknown }).code });
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

/** Characters of an answer that an error quotes: enough to distinguish a login page from a changed shape. */
const quotedCharactersMax = 200;

/** An answer that is not a success, or not the success that was expected. */
interface Refusal {
  readonly status: number;
  readonly text: string;
}

/**
 * Makes the function that quotes the start of a refusal on one line, with the key replaced. It quotes no
 * success, which contains records, and no authentication failure, which may repeat the key in any form.
 */
export function createQuote(apiKey: string): (answer: Refusal) => string {
  return ({ status, text }) => {
    if (status < 300 || status === 401 || status === 403) return `${text.length} characters`;
    // The key is replaced before the quote is cut, so that no cut leaves a part of it.
    const whole = text.replaceAll(apiKey, '[API key]').trim();
    if (whole === '') return 'an empty body';
    const start = whole.slice(0, quotedCharactersMax).replace(/\s+/g, ' ');
    // Control characters are escaped. JSON has its own escapes for quotation marks and backslashes.
    const escaped = JSON.stringify(start)
      .slice(1, -1)
      .replace(/\\(["\\])/g, '$1');
    return `"${escaped}${whole.length > quotedCharactersMax ? '…' : ''}"`;
  };
}

/** The parts of a success that a message may describe. */
export interface Received {
  readonly text: string;
  readonly contentType: string | undefined;
}

/** Types and encodings that a message may name; others could be the answer's own text. */
const nameable =
  /^(?:application\/(?:json|problem\+json|octet-stream|pdf|xml|zip)|text\/(?:csv|html|plain|xml)|br|compress|deflate|zstd)$/;

/** Names a content type or encoding for a message. */
export function nameOf(header: string | undefined): string {
  const [name = ''] = (header ?? '').toLowerCase().split(';', 1);
  return nameable.test(name.trim()) ? name.trim() : name === '' ? 'no type' : 'an unknown type';
}

/**
 * Parses the body of a success, which is never quoted: it contains records.
 * @throws Failure SERVICE_ANSWER_UNREADABLE, with the type and length, and where it stops being JSON
 */
export function parse(answer: Received): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    const at = jsonStopsAt(answer.text);
    const where =
      at < answer.text.length
        ? `not JSON from character ${at} on`
        : 'cut short, or wrong inside one of its texts';
    throw unexpected('JSON', answer, where);
  }
}

/** Makes the failure for an answer that is not `wanted`, without quoting it. */
export function unexpected(wanted: string, { text, contentType }: Received, found: string): Failure {
  const got = text === '' ? 'an empty body' : `${text.length} characters of ${nameOf(contentType)}: ${found}`;
  return new Failure('SERVICE_ANSWER_UNREADABLE', `expected ${wanted}, got ${got}`);
}
