import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createQuote } from '../../service/failures.ts';

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
