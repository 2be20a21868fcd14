import { recordPolicy, triedFor } from './retry-policy.ts';

/**
 * The failure catalogue: each kind of failure once, with its meaning, whether a retry can help, and the
 * operator's action. A test checks docs/reference/failures.md against it.
 */
export type FailureAction = 'retry' | 'park' | 'dead';

export interface FailureType {
  readonly action: FailureAction;
  readonly means: string;
  readonly operator: string;
}

export const failureTypes = {
  SERVICE_UNREACHABLE: {
    action: 'retry',
    means: 'No answer from the service: connection refused, cut or timed out.',
    operator: 'Nothing, unless it lasts: check SERVICE_URL, the network and HTTPS_PROXY.',
  },
  SERVICE_BUSY: {
    action: 'retry',
    means: 'The service answered 429: too many requests.',
    operator: 'If it lasts, lower SERVICE_MAX_CONCURRENCY: each worker waits and slows down by itself.',
  },
  SERVICE_ERROR: {
    action: 'retry',
    means: 'The service answered 5xx.',
    operator: 'Nothing, unless it lasts: ask the service.',
  },
  SERVICE_ANSWER_UNREADABLE: {
    action: 'retry',
    means: 'The answer was not the JSON that the endpoint catalogue expects, was cut short or too large.',
    operator: 'If it lasts, compare its answer with the entry in SERVICE_ENDPOINTS.',
  },
  SERVICE_KEY_REFUSED: {
    action: 'park',
    means: 'The service answered 401: the API key is missing, wrong or inactive.',
    operator: 'Set SERVICE_API_KEY to a valid key, restart the workers, run metersync resume.',
  },
  SERVICE_ACCESS_DENIED: {
    action: 'park',
    means: 'The service answered 403: the key may not see this company.',
    operator: 'Grant the key access and run metersync resume, or remove the company from SERVICE_COMPANIES.',
  },
  SERVICE_NOT_FOUND: {
    action: 'park',
    means: 'The service answered 404: no such record, or the endpoint catalogue has a wrong path.',
    operator:
      'If a whole resource is not found, correct its path in SERVICE_ENDPOINTS or set it to null, restart the workers, run metersync resume.',
  },
  SERVICE_REQUEST_REFUSED: {
    action: 'park',
    means: 'The service answered another 4xx or a redirect.',
    operator:
      'Compare the quoted answer with the entry in SERVICE_ENDPOINTS, correct it, restart the workers, run metersync resume.',
  },
  SERVICE_RECORD_REFUSED: {
    action: 'park',
    means: 'The service answered 4xx for one document or its usage, and shows its company.',
    operator: `If the document is yours, grant the key access and run metersync resume. After ${triedFor.olderState} its events are \`missing\`.`,
  },
  SERVICE_OUTAGE: {
    action: 'retry',
    means: 'The service fails every request; answers of /ping do not count.',
    operator:
      'Nothing, unless it lasts: check SERVICE_URL and the network, ask the service. No work is given up.',
  },
  RECORD_NOT_SHOWN: {
    action: 'retry',
    means: 'The service does not show the record of an event, or only an older state.',
    operator: `For a few records nothing; for many, ask the service why it does not show them. Their events are \`missing\` after ${triedFor.notFound} if they are never shown, after ${triedFor.olderState} if only an older state is. A later read settles them.`,
  },
  UNKNOWN_TO_SERVICE: {
    action: 'retry',
    means: 'Events name a company or a meter that no record, setting or answer of the service contains.',
    operator: `If it is yours, see that the key may read it, then run metersync resume. If many are not yours, somebody else signs events: rotate the secret. After ${triedFor.olderState} the events are \`missing\`, and rows that only they wrote are tombstoned.`,
  },
  READINGS_NOT_SHOWN: {
    action: 'retry',
    means: 'The service shows fewer readings of a range than an event reported.',
    operator: `Nothing: they are read ${recordPolicy.shortfallAttemptsMax} times more; then \`status\` and metersync.interval_ledger show the shortfall.`,
  },
  LISTING_UNSTABLE: {
    action: 'retry',
    means: 'A listing changed while it was read, or shows fewer records than its total.',
    operator: `Nothing: it is read again. Events of documents whose usage is never complete are \`missing\` after ${triedFor.olderState}.`,
  },
  SERVICE_FILTER_IGNORED: {
    action: 'park',
    means: 'The service ignores the filter for lately updated records.',
    operator: 'Correct `updatedSince` of the entry in SERVICE_ENDPOINTS, or leave it out.',
  },
  COMPANY_BUSY: {
    action: 'retry',
    means: 'Another run is reading the company.',
    operator: `Nothing: it is read afterwards, or counts as failed after ${triedFor.turn}.`,
  },
  WAREHOUSE_UNAVAILABLE: {
    action: 'retry',
    means: 'Postgres refused the connection, restarted, was out of space, or broke a deadlock.',
    operator: 'Bring Postgres back.',
  },
  WAREHOUSE_VALUE_REFUSED: {
    action: 'dead',
    means:
      'Postgres cannot hold the JSON: NUL, lone surrogate, a number beyond numeric, nesting too deep; or an id is unusable.',
    operator: 'Look at the event or record and its error; its bytes are kept.',
  },
  UNEXPECTED_ERROR: {
    action: 'retry',
    means: 'An error outside of this list: a bug of metersync.',
    operator: 'Report it with its line of the log.',
  },
  PAYLOAD_REFUSED: {
    action: 'retry',
    means:
      'A payload in Temporal is not encrypted under a key of TEMPORAL_CODEC_KEYS, or is of another workflow.',
    operator:
      'If a process of yours has other keys, give it these (of an embedded Temporal: temporal-codec-key of METERSYNC_DIR). Put a removed key back until each schedule ran again: its next run gets the last result. If the payload is older than the keys, set TEMPORAL_PLAINTEXT=accepted until it is done. Else somebody else reaches Temporal: terminate the workflow.',
  },
  EVENT_UNREADABLE: {
    action: 'dead',
    means: 'A verified event is not JSON, or lacks an id or a timestamp.',
    operator: 'Look at the event in metersync.events; its bytes are kept.',
  },
} as const satisfies Record<string, FailureType>;

export type FailureCode = keyof typeof failureTypes;

const failureCodes = Object.keys(failureTypes) as FailureCode[];

/** Failures that need an operator before the work can go on. */
export const parkingCodes = failureCodes.filter((code) => failureTypes[code].action === 'park');

/**
 * Returns the code at the start of a reason (`CODE: words`, or `3 meters: CODE: words`); null without one.
 */
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
    more: { retryAfterMs?: number; status?: number; cause?: unknown } = {},
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
