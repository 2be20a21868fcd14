import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { failureTypes } from '../../contract/failures.ts';
import { requestPolicy } from '../../contract/retry-policy.ts';
import { createQuote, failureOfError, failureOfStatus, retryAfterMs } from '../../service/failures.ts';

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

const key = 'Fq8-3zLm_0Vt-77Ra-PwKc-19xD-hhNs-4YbE-o2';
const quote = createQuote(key);

test('quotes 200 characters of a refusal on one line, with the key replaced', () => {
  const text = ` \n{"echo": "${key}",\n "again": "${key}"}${'x'.repeat(10_000)}`;
  const start = '{"echo": "[API key]", "again": "[API key]"}';
  // The line break and the space after it count as two of the 200.
  expect(quote({ status: 500, text })).toBe(`"${start}${'x'.repeat(200 - 1 - start.length)}…"`);
  expect(quote({ status: 404, text: '{"error":"a \\"b\\" \\u0041 \0"}' })).toBe(
    '"{"error":"a \\"b\\" \\u0041 \\u0000"}"',
  );
  expect(quote({ status: 503, text: ' \n' })).toBe('an empty body');
});

test.each([401, 403, 200, 206])('does not quote an answer of %i', (status) => {
  for (const said of [key, Buffer.from(key).toString('base64'), 'a record'])
    expect(quote({ status, text: said })).toBe(`${said.length} characters`);
});

test('leaves no part of the key, wherever the quote is cut', () => {
  fc.assert(
    fc.property(fc.nat(260), fc.integer({ min: 1, max: 6 }), (before, times) => {
      const quoted = quote({ status: 500, text: `·${' '.repeat(before)}${key.repeat(times)}` });
      for (let from = 0; from + 4 <= key.length; from++)
        expect(quoted).not.toContain(key.slice(from, from + 4));
    }),
  );
});
