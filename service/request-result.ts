import { Failure, type FailureCode } from '../contract/failures.ts';

/** How a request to the service ended. `ended`: nobody needs its answer any more. */
export type RequestResult =
  | 'ok'
  | 'busy'
  | 'error'
  | 'unreachable'
  | 'unreadable'
  | 'refused'
  | 'not_found'
  | 'ended';

/** One request that ended, for measurements. */
export interface RequestFigures {
  /** The endpoint's name in the catalogue, or `ping`. */
  readonly endpoint: string;
  readonly result: RequestResult;
  readonly ms: number;
  /** Bytes of the answer's body on the wire. */
  readonly bytes: number;
}

export type OnRequest = (figures: RequestFigures) => void;

const results: Partial<Record<FailureCode, RequestResult>> = {
  SERVICE_BUSY: 'busy',
  SERVICE_ERROR: 'error',
  SERVICE_UNREACHABLE: 'unreachable',
  SERVICE_ANSWER_UNREADABLE: 'unreadable',
  SERVICE_KEY_REFUSED: 'refused',
  SERVICE_ACCESS_DENIED: 'refused',
  SERVICE_REQUEST_REFUSED: 'refused',
  SERVICE_NOT_FOUND: 'not_found',
};

/** Maps the error of a request to its result. */
export function resultOfError(error: unknown): RequestResult {
  return (error instanceof Failure ? results[error.code] : undefined) ?? 'ended';
}
