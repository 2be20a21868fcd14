import fc from 'fast-check';

/** Code points that are halves of surrogate pairs; a character is none of them. */
const halves = { first: 0xd800, count: 0x800 };
const characters = 0x110000 - halves.count;

/**
 * Any character, for `unit` of `fc.string`: with each seed those of fast-check's own `binary`. That one first makes a
 * map of all 1,112,064 characters, and every collection of garbage passes through it.
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
