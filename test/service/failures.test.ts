import { describe, expect, test } from 'vitest';
import { failureTypes } from '../../contract/failures.ts';
import { requestPolicy } from '../../contract/retry-policy.ts';
import { failureOfError, failureOfStatus, retryAfterMs } from '../../service/failures.ts';

describe('a status', () => {
  test.each([
    [200, null, 'none'],
    [204, 'SERVICE_ANSWER_UNREADABLE', 'retry'],
    [206, 'SERVICE_ANSWER_UNREADABLE', 'retry'],
    [301, 'SERVICE_REQUEST_REFUSED', 'park'],
    [302, 'SERVICE_REQUEST_REFUSED', 'park'],
    [304, 'SERVICE_REQUEST_REFUSED', 'park'],
    [400, 'SERVICE_REQUEST_REFUSED', 'park'],
    [401, 'SERVICE_KEY_REFUSED', 'park'],
    [403, 'SERVICE_ACCESS_DENIED', 'park'],
    [404, 'SERVICE_NOT_FOUND', 'park'],
    [405, 'SERVICE_REQUEST_REFUSED', 'park'],
    [408, 'SERVICE_UNREACHABLE', 'retry'],
    [410, 'SERVICE_NOT_FOUND', 'park'],
    [422, 'SERVICE_REQUEST_REFUSED', 'park'],
    [429, 'SERVICE_BUSY', 'retry'],
    [500, 'SERVICE_ERROR', 'retry'],
    [502, 'SERVICE_ERROR', 'retry'],
    [503, 'SERVICE_ERROR', 'retry'],
    [504, 'SERVICE_ERROR', 'retry'],
    [599, 'SERVICE_ERROR', 'retry'],
  ] as const)('%i is %s, to %s', (status, code, action) => {
    expect(failureOfStatus(status)).toBe(code);
    expect(code === null ? 'none' : failureTypes[code].action).toBe(action);
  });
});

describe('an error', () => {
  test.each([
    ['ECONNREFUSED', 'SERVICE_UNREACHABLE'],
    ['ECONNRESET', 'SERVICE_UNREACHABLE'],
    ['EPIPE', 'SERVICE_UNREACHABLE'],
    ['ENOTFOUND', 'SERVICE_UNREACHABLE'],
    ['EAI_AGAIN', 'SERVICE_UNREACHABLE'],
    ['ETIMEDOUT', 'SERVICE_UNREACHABLE'],
    ['UND_ERR_SOCKET', 'SERVICE_UNREACHABLE'],
    ['UND_ERR_CONNECT_TIMEOUT', 'SERVICE_UNREACHABLE'],
    ['CERT_HAS_EXPIRED', 'SERVICE_UNREACHABLE'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SERVICE_UNREACHABLE'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'SERVICE_UNREACHABLE'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'SERVICE_UNREACHABLE'],
    ['HPE_INVALID_CONSTANT', 'SERVICE_ANSWER_UNREADABLE'],
    ['UND_ERR_HEADERS_OVERFLOW', 'SERVICE_ANSWER_UNREADABLE'],
    ['Z_DATA_ERROR', 'SERVICE_ANSWER_UNREADABLE'],
    ['ERR_BUFFER_TOO_LARGE', 'SERVICE_ANSWER_UNREADABLE'],
    ['UND_ERR_INVALID_ARG', 'SERVICE_REQUEST_REFUSED'],
    // A closed client and defects are not failures of the service.
    ['UND_ERR_DESTROYED', undefined],
    ['UND_ERR_CLOSED', undefined],
    ['ERR_INVALID_ARG_TYPE', undefined],
  ])('with code %s is %s', (code, failure) => {
    expect(failureOfError(Object.assign(new Error('x'), { code }))).toBe(failure);
  });

  test.each([
    ['without a code', new TypeError('x is undefined')],
    ['with a number for a code', new DOMException('aborted', 'AbortError')],
    ['that is not an Error', 'ECONNREFUSED'],
  ])('%s is not the fault of the service', (_, error) => {
    expect(failureOfError(error)).toBeUndefined();
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2025-06-01T12:00:00Z');
  test.each([
    ['0', undefined, 0],
    ['7', undefined, 7_000],
    [' 7 ', undefined, 7_000],
    ['1.5', undefined, 1_500],
    ['999999999999', undefined, requestPolicy.retryAfterMaxMs],
    ['Sun, 01 Jun 2025 12:00:30 GMT', undefined, 30_000],
    ['Sun, 01 Jun 2025 11:00:00 GMT', undefined, 0],
    // The service's clock is ten minutes fast, as its Date shows.
    ['Sun, 01 Jun 2025 12:10:30 GMT', 'Sun, 01 Jun 2025 12:10:00 GMT', 30_000],
    ['Sun, 01 Jun 2025 12:00:30 GMT', 'nonsense', 30_000],
    ['Sun, 01 Jun 2099 12:00:30 GMT', undefined, requestPolicy.retryAfterMaxMs],
    ['', undefined, undefined],
    ['-5', undefined, undefined],
    ['soon', undefined, undefined],
    [undefined, undefined, undefined],
  ])('%j with the Date %j is %j ms', (retryAfter, date, ms) => {
    expect(retryAfterMs({ retryAfter, date, now })).toBe(ms);
  });
});
