import { stringEnd as stringEndOf } from '../../contract/json-members.ts';
import type { RecordPage } from './page.ts';

/**
 * Cuts out the exact text of each record of a page, in order. Postgres cannot: to find a key it
 * reads every escape before it. An escape that it cannot hold (NUL, a lone surrogate) makes the
 * whole page unreadable. The body must be valid JSON.
 */
export function itemTexts({
  body,
  itemsKey,
  joined = false,
}: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): string[] {
  const bodies = joined ? elements(body) : [body];
  if (itemsKey === '') return bodies;
  return bodies.flatMap((text) =>
    elements(itemsKey === null ? text : (member(text, itemsKey) ?? '[]')),
  );
}

/** Builds the page with these records alone, and their digests. */
export const pageOfTexts = (
  page: RecordPage,
  texts: readonly string[],
  digests?: readonly string[],
): RecordPage => ({
  ...page,
  body: `[${texts.join(',')}]`,
  itemsKey: null,
  joined: false,
  digests,
});

const space = /[ \t\n\r]*/y;
/** Characters of a value without brackets. */
const scalar = /[^\s,\]}]+/y;
const [quote, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d];

function elements(array: string): string[] {
  const texts: string[] = [];
  for (let at = skip(array, skip(array, 0, space) + 1, space); array[at] !== ']'; ) {
    const end = valueEnd(array, at);
    texts.push(array.slice(at, end));
    at = skip(array, end, space);
    if (array[at] === ',') at = skip(array, at + 1, space);
  }
  return texts;
}

/** The last value under a key, like JSON.parse. */
function member(object: string, key: string): string | undefined {
  let found: string | undefined;
  for (let at = skip(object, skip(object, 0, space) + 1, space); object[at] !== '}'; ) {
    const keyEnd = stringEnd(object, at);
    const start = skip(object, skip(object, keyEnd, space) + 1, space);
    const end = valueEnd(object, start);
    if (JSON.parse(object.slice(at, keyEnd)) === key) found = object.slice(start, end);
    at = skip(object, end, space);
    if (object[at] === ',') at = skip(object, at + 1, space);
  }
  return found;
}

function valueEnd(text: string, at: number): number {
  const first = text[at];
  if (first === '"') return stringEnd(text, at);
  if (first !== '[' && first !== '{') return skip(text, at, scalar);
  let depth = 0;
  for (let place = at; place < text.length; place += 1) {
    const code = text.charCodeAt(place);
    // Brackets inside strings do not count.
    if (code === quote) place = stringEnd(text, place) - 1;
    else if (code === openBracket || code === openBrace) depth += 1;
    else if (code === closeBracket || code === closeBrace) {
      depth -= 1;
      if (depth === 0) return place + 1;
    }
  }
  throw new Error('not JSON: a bracket is not closed');
}

function stringEnd(text: string, at: number): number {
  const end = stringEndOf(text, at);
  if (end === -1) throw new Error('not JSON: a string is not closed');
  return end;
}

/** Returns where the pattern ends that begins at `at`. */
function skip(text: string, at: number, pattern: RegExp): number {
  pattern.lastIndex = at;
  if (!pattern.test(text)) throw new Error(`not JSON: ${pattern.source} at ${at}`);
  return pattern.lastIndex;
}
