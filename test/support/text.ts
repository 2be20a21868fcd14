import fc from 'fast-check';

/** Code points that are halves of surrogate pairs. They are not characters. */
const halves = { first: 0xd800, count: 0x800 };
const characters = 0x110000 - halves.count;

/**
 * Any character, for `unit` of `fc.string`, with the same draws as fast-check's own `binary`, which would
 * keep a map of all 1,112,064 characters for every garbage collection to visit.
 */
export const anyCharacter: fc.Arbitrary<string> = fc.nat({ max: characters - 1 }).map(
  (n) => String.fromCodePoint(n < halves.first ? n : n + halves.count),
  (text) => {
    if (typeof text !== 'string' || [...text].length !== 1 || !text.isWellFormed())
      throw new Error('not one character');
    const code = text.codePointAt(0) ?? 0;
    return code < halves.first ? code : code - halves.count;
  },
);
