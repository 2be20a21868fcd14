import fc from 'fast-check';
import { anyCharacter } from './text.ts';

/** Texts that are hard for some layer between a socket and a column. */
const hostileTexts = [
  '\0',
  'a\0b',
  '\ud800',
  'x\udfff',
  '\ud83d',
  '\ufffe',
  '\u202e',
  '\x1b[2J',
  '\r\n',
  '\x7f\x9f',
  '',
  ' ',
  '{}',
  '{"a"}',
  '\\',
  '"',
  "'; drop table x; --",
  '$1',
  '%s',
  '%I',
  '*',
  '/',
  '~',
  '..',
  'NULL',
  'null',
  '__proto__',
  'constructor',
  'toString',
  'length',
  'id',
  'company',
  'eventType',
  'NaN',
  'Infinity',
  '-infinity',
  '0x10',
  '1e131071',
  '9223372036854775808',
  '00012',
  '1,5',
  '2026-02-30',
  '2026-13-01T00:00:00',
  '0000-00-00',
  '275761-01-01T00:00:00',
  'now',
  'epoch',
  '24:00',
  '00000000-0000-0000-0000-00000000000',
  'x'.repeat(3_000),
  '\u{1f4a9}'.repeat(1_000),
  '\0'.repeat(100),
];

/** JSON numbers in odd spellings; some become 131,072 digits, and some are not doubles. */
const hostileNumbers = [
  '0',
  '-0',
  '1e0',
  '-1',
  '1.0',
  '1E+2',
  '1e-2',
  '9007199254740993',
  '0.1234567890123456789012345',
  '1e400',
  '-1e400',
  '1e-400',
  '1e131071',
  '1e131072',
  '1e-16383',
  '1e-16384',
  '1e999999999',
  '9'.repeat(2_000),
];

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 2, arbitrary: fc.string({ unit: anyCharacter, maxLength: 40 }) },
  // Single halves of surrogate pairs, next to any other characters.
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 12 })
    .map((codes) => String.fromCharCode(...codes)),
);

/** JSON.stringify escapes lone surrogates, which can travel in bytes only as escapes. */
const textAsJson = hostileText.map((text) => JSON.stringify(text));

const asObject = (members: readonly (readonly [string, string])[]): string =>
  `{${members.map(([key, value]) => `${key}:${value}`).join(',')}}`;

const deep = fc
  .tuple(fc.constantFrom(7, 9, 200, 3_000, 60_000), fc.constantFrom('[', '{"":', '{"a":[', '[{"*":'))
  .map(([levels, open]) => {
    const close = [...open].reverse().flatMap((char) => (char === '[' ? [']'] : char === '{' ? ['}'] : []));
    return `${open.repeat(levels)}1${close.join('').repeat(levels)}`;
  });

const wide = fc
  .tuple(fc.constantFrom(299, 301, 6_000), fc.constantFrom('k', 'x'.repeat(90), 'é', '/~*'))
  .map(([keys, name]) =>
    asObject(Array.from({ length: keys }, (_, n) => [JSON.stringify(`${name}${n}`), '1'])),
  );

const many = fc
  .tuple(
    fc.constantFrom(1, 40, 2_000),
    fc.constantFrom(...hostileNumbers.slice(0, -1), '""', 'null', '[]', '{}'),
  )
  .map(([count, element]) => `[${Array.from({ length: count }, () => element).join(',')}]`);

/** Any JSON as text, including values that JavaScript cannot hold, such as 1e131071. */
export const hostileJson: fc.Arbitrary<string> = fc.letrec<{ any: string }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 6, arbitrary: textAsJson },
    { weight: 4, arbitrary: fc.constantFrom(...hostileNumbers) },
    { weight: 2, arbitrary: fc.constantFrom('null', 'true', 'false', '[]', '{}') },
    { weight: 1, arbitrary: deep },
    { weight: 1, arbitrary: wide },
    { weight: 1, arbitrary: many },
    { weight: 2, arbitrary: fc.array(tie('any'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`) },
    {
      weight: 2,
      arbitrary: fc.array(fc.tuple(textAsJson, tie('any')), { maxLength: 4 }).map(asObject),
    },
  ),
})).any;

const here = '@here@';

/** Yields every copy of a JSON value with a placeholder for one part, or for one more member of an object. */
function* withOneReplaced(value: unknown): Generator<unknown> {
  yield here;
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const [at, element] of value.entries())
      for (const part of withOneReplaced(element)) yield value.with(at, part);
    return;
  }
  yield { ...value, 'one more': here };
  for (const [key, member] of Object.entries(value))
    for (const part of withOneReplaced(member)) yield { ...value, [key]: part };
}

/** Makes JSON texts of an object with hostile JSON as one part or one more member; `kept` members stay. */
export function hostileVariant(value: object, kept: readonly string[] = []): fc.Arbitrary<string> {
  const stays = Object.fromEntries(Object.entries(value).filter(([key]) => kept.includes(key)));
  const others = Object.fromEntries(Object.entries(value).filter(([key]) => !kept.includes(key)));
  const [, ...places] = [...withOneReplaced(others)].map((one) =>
    JSON.stringify({ ...stays, ...(one as object) }),
  );
  return fc
    .tuple(fc.constantFrom(...places), hostileJson)
    .map(([text, json]) => text.replace(JSON.stringify(here), () => json));
}
