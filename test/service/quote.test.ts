import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createQuote } from '../../service/quote.ts';
import { cases } from '../support/cases.ts';

const key = 'k3y/A+b&9f<"\\7c%41Zx==q';
const quote = createQuote(key);

test('a quote has some 200 characters, on one line, without the key', () => {
  const message = quote(`{"echo": "${key}",\n ${'x'.repeat(10_000)}`);
  expect(message).toBe(`"{"echo": "[API key]", ${'x'.repeat(200 - 22)}…"`);
  expect(quote('{"error":"a \\"b\\" \\u0041 \0"}')).toBe('"{"error":"a \\"b\\" \\u0041 \\u0000"}"');
  expect(quote(' \n')).toBe('an empty body');
});

test('a quote is cut after the key was removed, so that no part of it moves up', () => {
  const plain = 'Fq8-3zLm_0Vt-77Ra-PwKc-19xD-hhNs-4YbE-o2';
  for (let before = 0; before < 260; before++) {
    for (const echo of [plain.repeat(6), plain, plain.slice(0, 30), plain.slice(12)]) {
      const message = createQuote(plain)(`${'·'.repeat(before)}${echo}`);
      expect(longestRun(message, plain)).toBeLessThan(8);
    }
  }
});

describe('the key', () => {
  const html: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  const hex = (char: string) => char.charCodeAt(0).toString(16).padStart(2, '0');
  const spelled: Readonly<Record<string, (text: string) => string>> = {
    plain: (text) => text,
    'in lower case': (text) => text.toLowerCase(),
    'in upper case': (text) => text.toUpperCase(),
    'in JSON': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
    'in JSON in JSON': (text) => JSON.stringify(JSON.stringify(text)),
    'in JSON, all escaped': (text) => text.replace(/./g, (char) => `\\u00${hex(char)}`),
    'in JavaScript': (text) => text.replace(/\W/g, (char) => `\\x${hex(char)}`),
    'in a URL': encodeURIComponent,
    'in a URL in a URL': (text) => encodeURIComponent(encodeURIComponent(text)),
    'in a URL, all escaped': (text) => text.replace(/./g, (char) => `%${hex(char).toUpperCase()}`),
    'in HTML': (text) => text.replace(/[&<>"']/g, (char) => html[char] as string),
    'in HTML, all escaped': (text) => text.replace(/./g, (char) => `&#x${hex(char)};`),
    'in base64': (text) => Buffer.from(text).toString('base64'),
    'in base64 for URLs': (text) => Buffer.from(text).toString('base64url'),
    'as Basic': (text) => `Basic ${Buffer.from(`${text}:`).toString('base64')}`,
    'as the password of Basic': (text) => `Basic ${Buffer.from(`ab:${text}`).toString('base64')}`,
    'in hex': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  };

  test.each(Object.entries(spelled))('%s is no part of a quote', (_, spell) => {
    const message = quote(`before ${spell(key)} after`);
    expect(message).toMatch(/^"before .*\[API key\].* after"$/);
    for (const reading of readings(message)) expect(longestRun(reading, key)).toBeLessThan(8);
  });

  test('is no part of a quote, in any spelling, cut anywhere', () => {
    const printable = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
    const keys = fc.string({ unit: printable, minLength: 8, maxLength: 48 });
    const noise = fc.string({ maxLength: 30 });
    const echo = fc.record({
      spelling: fc.constantFrom(...Object.values(spelled)),
      from: fc.nat(12),
      to: fc.integer({ min: 8, max: 48 }),
      before: fc.oneof(
        noise,
        fc.nat(220).map((count) => ' .'.repeat(count)),
      ),
    });
    fc.assert(
      fc.property(
        keys,
        fc.array(echo, { minLength: 1, maxLength: 4 }),
        fc.nat(400),
        (apiKey, echoes, length) => {
          const text = echoes
            .map(({ spelling, from, to, before }) => before + spelling(apiKey.slice(from, from + to)))
            .join('')
            .slice(0, length);
          const message = createQuote(apiKey)(text);
          for (const reading of readings(message)) expect(longestRun(reading, apiKey)).toBeLessThan(8);
        },
      ),
      { numRuns: cases(400, 1_500) },
    );
  });

  test('is no part of a quote where another kind of escape takes its first character', () => {
    const message = createQuote("!!0!!!!!!'")('%00!!!!!!&#39;');
    for (const reading of readings(message)) expect(longestRun(reading, "!!0!!!!!!'")).toBeLessThan(8);
  });

  test('that is short is searched for in full', () => {
    expect(createQuote('abc')('the ABC of abcd')).toBe('"the [API key] of [API key]d"');
  });
});

/** Returns the message in every reading that could reveal the key. */
function readings(quoted: string): string[] {
  if (quoted === 'an empty body') return [];
  const text = quoted.slice(1, -1).replaceAll('[API key]', '·');
  const byte = (digits: string) => String.fromCharCode(Number.parseInt(digits, 16));
  // Without the placeholder of the key, and the quotation marks and backslashes of a JSON text.
  const plain = [text];
  for (let time = 0; time < 2; time++) {
    plain.push(
      ...plain.flatMap((one) => [
        one.replace(/\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})/gi, (_, a?: string, b?: string) =>
          byte(a ?? b ?? ''),
        ),
        one.replace(/\\(["\\/])/g, '$1'),
        one.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => byte(digits)),
        one.replace(/&#x([0-9a-f]+);/gi, (_, digits: string) => byte(digits)).replace(/&#39;/g, "'"),
        one
          .replace(/&lt;/g, '<')
          .replace(/&gt;/g, '>')
          .replace(/&quot;/g, '"')
          .replace(/&amp;/g, '&'),
      ]),
    );
  }
  const coded = (text.match(/[A-Za-z0-9+/_-]{8,}/g) ?? []).flatMap((run) =>
    [0, 1, 2, 3].flatMap((at) => [
      Buffer.from(run.slice(at), 'base64').toString('latin1'),
      Buffer.from(run.slice(at), 'hex').toString('latin1'),
    ]),
  );
  return [...new Set([...plain, ...coded])];
}

/** The longest run of the key's characters, in any case, that a text has. */
function longestRun(text: string, ofKey: string): number {
  const [lower, wanted] = [text.toLowerCase(), ofKey.toLowerCase()];
  let longest = 0;
  for (let at = 0; at < wanted.length; at++) {
    while (at + longest < wanted.length && lower.includes(wanted.slice(at, at + longest + 1))) longest += 1;
  }
  return longest;
}
