/** A token of JSON text and its kind, or white space between tokens. */
export interface JsonPiece {
  readonly kind: 'name' | 'string' | 'number' | 'literal' | 'mark' | 'space';
  readonly text: string;
}

export interface JsonLayout {
  readonly pieces: readonly JsonPiece[];
  /** Whether the end is missing because the text is too long. */
  readonly cut: boolean;
}

const word = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gy;
const space = /\s*/y;

/** The largest depth of indentation, so that a text of brackets does not grow by the square. */
const indentMax = 40;

/** Lays JSON out over lines, up to about `lengthMax` characters; undefined if the text is not JSON. */
export function layOutJson(text: string, lengthMax: number): JsonLayout | undefined {
  if (!isJson(text)) return undefined;
  const pieces: JsonPiece[] = [];
  let length = 0;
  let depth = 0;
  const words = wordsOf(text);
  const push = (kind: JsonPiece['kind'], piece: string) => {
    pieces.push({ kind, text: piece });
    length += piece.length;
  };
  const newLine = () => push('space', `\n${'  '.repeat(Math.min(depth, indentMax))}`);
  let current = words.next().value;
  while (current !== undefined) {
    if (length >= lengthMax) return { pieces, cut: true };
    const next = words.next().value;
    if (opens(current)) {
      push('mark', current);
      depth++;
      if (next !== undefined && !closes(next)) newLine();
    } else if (closes(current)) {
      push('mark', current);
    } else if (current === ',') {
      push('mark', current);
      newLine();
    } else if (current === ':') {
      push('mark', current);
      push('space', ' ');
    } else {
      push(kindOf(current, next), current.slice(0, lengthMax));
    }
    if (next !== undefined && closes(next)) {
      depth--;
      if (!opens(current)) newLine();
    }
    current = next;
  }
  return { pieces, cut: false };
}

const opens = (text: string): boolean => text === '{' || text === '[';
const closes = (text: string): boolean => text === '}' || text === ']';

function kindOf(text: string, next: string | undefined): JsonPiece['kind'] {
  if (text.startsWith('"')) return next === ':' ? 'name' : 'string';
  return /^[-\d]/.test(text) ? 'number' : 'literal';
}

function* wordsOf(text: string): Generator<string, undefined> {
  let at = 0;
  for (;;) {
    space.lastIndex = at;
    space.exec(text);
    word.lastIndex = space.lastIndex;
    const [found] = word.exec(text) ?? [];
    if (found === undefined) return undefined;
    at = word.lastIndex;
    yield found;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
