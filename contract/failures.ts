import { recordPolicy, triedFor } from './retry-policy.ts';

/**
 * The failure catalogue: each kind of failure once, with its meaning, whether a retry can help, and the
 * operator's action. A test checks docs/reference/failures.md against it.
 */
export type FailureAction = 'retry' | 'park' | 'dead';

interface FailureType {
  readonly action: FailureAction;
  readonly means: string;
  readonly operator: string;
}

export const failureTypes = {
  SERVICE_UNREACHABLE: {
    action: 'retry',
    means: 'No answer from the service: connection refused, cut or timed out.',
    operator: 'Nothing at first. If it lasts, check SERVICE_URL, the network and HTTPS_PROXY.',
  },
  SERVICE_BUSY: {
    action: 'retry',
    means: 'The service answered 429: too many requests.',
    operator: 'If it lasts, lower SERVICE_MAX_CONCURRENCY: each worker waits and slows down by itself.',
  },
  SERVICE_ERROR: {
    action: 'retry',
    means: 'The service answered 5xx.',
    operator: 'Nothing at first. If it lasts, ask the operator of the service.',
  },
  SERVICE_ANSWER_UNREADABLE: {
    action: 'retry',
    means:
      'The answer is not the JSON that the endpoint catalogue describes, is incomplete, or is too large.',
    operator: 'If it lasts, compare the answer with the entry in SERVICE_ENDPOINTS.',
  },
  SERVICE_KEY_REFUSED: {
    action: 'park',
    means: 'The service answered 401: the API key is missing, wrong or inactive.',
    operator: 'Set SERVICE_API_KEY to a valid key, restart the workers, and run metersync resume.',
  },
  SERVICE_ACCESS_DENIED: {
    action: 'park',
    means: 'The service answered 403: the key has no access to this company.',
    operator: 'Grant the key access and run metersync resume, or remove the company from SERVICE_COMPANIES.',
  },
  SERVICE_NOT_FOUND: {
    action: 'park',
    means: 'The service answered 404: no such record, or the endpoint catalogue has a wrong path.',
    operator:
      'If a whole resource is not found, correct its path in SERVICE_ENDPOINTS or set it to null, restart the workers, and run metersync resume.',
  },
  SERVICE_REQUEST_REFUSED: {
    action: 'park',
    means: 'The service answered another 4xx or a redirect.',
    operator:
      'Compare the quoted answer with the entry in SERVICE_ENDPOINTS, correct it, restart the workers, and run metersync resume.',
  },
  SERVICE_RECORD_REFUSED: {
    action: 'park',
    means:
      'The service answered 4xx for one document or its usage, although it shows the company of the document.',
    operator: `If the document is yours, grant the key access and run metersync resume. After ${triedFor.olderState} its events are \`missing\`.`,
  },
  SERVICE_OUTAGE: {
    action: 'retry',
    means: 'The service fails every request for data.',
    operator:
      'Nothing at first. If it lasts, check SERVICE_URL and the network, and ask the operator of the service. No work is given up.',
  },
  RECORD_NOT_SHOWN: {
    action: 'retry',
    means:
      'The service does not show the record of an event, or only an older state; or it shows a record that an event deleted.',
    operator: `Nothing for a few records. For many, ask the service why. Their events are \`missing\` after ${triedFor.notFound}, or after ${triedFor.olderState} if the service shows an older state; a deletion is \`superseded\` then. A later read that finds the records settles them.`,
  },
  UNKNOWN_TO_SERVICE: {
    action: 'retry',
    means: 'Events name a company or a meter that no record, setting or answer of the service contains.',
    operator: `If it is yours, give the key access to it, then run metersync resume. If many are not yours, somebody else can sign events: rotate the secret. After ${triedFor.olderState} the events are \`missing\`, and rows that only they wrote are tombstoned.`,
  },
  READINGS_NOT_SHOWN: {
    action: 'retry',
    means: 'The service shows fewer readings of a range than an event reported.',
    operator: `Nothing. The range is read ${recordPolicy.shortfallAttemptsMax} more times. After that, \`status\` and metersync.interval_ledger show the shortfall.`,
  },
  LISTING_UNSTABLE: {
    action: 'retry',
    means: 'A listing changed while it was read, or shows fewer records than its total.',
    operator: `Nothing. The listing is read again. Events of documents whose usage is never complete are \`missing\` after ${triedFor.olderState}.`,
  },
  SERVICE_FILTER_IGNORED: {
    action: 'park',
    means: 'The service ignores the filter for recently updated records.',
    operator: 'Correct `updatedSince` of the entry in SERVICE_ENDPOINTS, or remove it.',
  },
  WAREHOUSE_UNAVAILABLE: {
    action: 'retry',
    means: 'Postgres refused the connection, restarted, was out of space, or broke a deadlock.',
    operator: 'Start Postgres again. If its disk is full, free some space.',
  },
  WAREHOUSE_VALUE_REFUSED: {
    action: 'dead',
    means:
      'Postgres cannot store the JSON (a number too large for numeric, or too deep nesting), or an id is unusable.',
    operator: 'Look at the event or record and its error. Its bytes are kept.',
  },
  UNEXPECTED_ERROR: {
    action: 'retry',
    means: 'An error that is not in this list. It is a bug of metersync.',
    operator: 'Report it with its line in the log.',
  },
  PAYLOAD_REFUSED: {
    action: 'retry',
    means:
      'A payload in Temporal is not encrypted with a key of TEMPORAL_CODEC_KEYS, or belongs to another workflow.',
    operator:
      'Give all processes the same keys (for an embedded Temporal, the file temporal-codec-key in METERSYNC_DIR). If a key was removed, add it again until each schedule has run once more. If the payload is older than the keys, set TEMPORAL_PLAINTEXT=accepted until its workflow has ended. Otherwise somebody else can reach Temporal: terminate the workflow.',
  },
  EVENT_UNREADABLE: {
    action: 'dead',
    means:
      'A verified event is not JSON, lacks a type, the id of its record or the bounds of its range, or names a range that starts after its end.',
    operator: 'Look at the event in metersync.events. Its bytes are kept.',
  },
} as const satisfies Record<string, FailureType>;

export type FailureCode = keyof typeof failureTypes;

/** Why requests fail, or events wait: a failure of the catalogue, and its message. */
export interface WaitingReason {
  readonly code: FailureCode;
  readonly message: string;
}

const failureCodes = Object.keys(failureTypes) as FailureCode[];

/** Failures that need an operator before the work can go on. */
export const parkingCodes = failureCodes.filter((code) => failureTypes[code].action === 'park');

/** Returns the code that begins a reason (`CODE: words` or `3 meters: CODE: words`), or null. */
export function codeOfReason(reason: string): FailureCode | null {
  const [, code = ''] = /^(?:\d+ meters: )?([A-Z_]+): /.exec(reason) ?? [];
  return code in failureTypes ? (code as FailureCode) : null;
}

/** An error of the catalogue. `retryAfterMs` is the wait that the service asked for, if any. */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;

  constructor(
    code: FailureCode,
    message: string,
    more: { retryAfterMs?: number | undefined; status?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = code;
    this.code = code;
    this.retryAfterMs = more.retryAfterMs;
    this.status = more.status;
  }

  get action(): FailureAction {
    return failureTypes[this.code].action;
  }
}
