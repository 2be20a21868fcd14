/**
 * Reads JSON by its text, because JSON.parse loses what it cannot hold: digits of a number that a float would
 * round (money and usage are decimals, an id may be larger than 2^53), escapes, and how a record was written.
 */

type JsonToken = 'name' | 'text' | 'number' | 'word' | 'open' | 'close' | 'comma';

/**
 * Maximum nesting of objects and arrays. Each level takes 8 bytes of memory. A text that nests more deeply is
 * read only up to this depth. Postgres accepts far less, but a compressed answer of a few kB could open 64
 * million levels.
 */
const openMax = 1_000_000;

const [quote, comma, colon, openBrace, openBracket] = [0x22, 0x2c, 0x3a, 0x7b, 0x5b];
/** The character code of a closing bracket is the code of the opening bracket plus 2. */
const toClose = 2;

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])/y;
const word = /(?:true|false|null)(?!\w)/y;

/**
 * Reads a text token by token, up to the place where it stops being JSON. Nesting takes memory, up to a
 * limit, but no stack. The contents of strings are not checked, so a NUL or an invalid escape in a string
 * does not stop the reading.
 */
export class JsonTokens {
  readonly #text: string;
  /** The brackets that are open. */
  readonly #open: number[] = [];
  #at: number;
  #nameEnd = 0;
  #expects: 'value' | 'name' | 'comma' = 'value';
  /** Whether the last token opened a container, so that the next token may close it. */
  #isEmpty = false;
  kind: JsonToken = 'word';
  /** Position of the token. */
  from = 0;
  /** Position after the token; for a name, of its value. At the end, where reading stopped. */
  to = 0;

  constructor(text: string) {
    this.#text = text;
    this.#at = text.length - withoutByteOrderMark(text).length;
  }

  /** How many objects and arrays are open after the token. */
  get depth(): number {
    return this.#open.length;
  }

  /** The text after the last token; empty if it nests too deeply. */
  get rest(): string {
    return this.depth === openMax ? '' : this.#text.slice(this.#at);
  }

  /** The name of a member, if the token is a name. It keeps its escapes if one of them is invalid. */
  get name(): string {
    const name = this.#text.slice(this.from + 1, this.#nameEnd - 1);
    if (!name.includes('\\')) return name;
    try {
      return JSON.parse(`"${name}"`) as string;
    } catch {
      return name;
    }
  }

  /** Takes the next token. Returns false at the end, or if JSON does not allow the token there. */
  next(): boolean {
    this.#skipSpace();
    this.from = this.#at;
    const code = this.#text.charCodeAt(this.#at);
    const taken = Number.isNaN(code) ? undefined : this.#take(code);
    if (taken === undefined) this.#at = this.from;
    else this.kind = taken;
    this.to = this.#at;
    return taken !== undefined;
  }

  #take(code: number): JsonToken | undefined {
    const inside = this.#open.at(-1);
    const isEmpty = this.#isEmpty;
    this.#isEmpty = false;
    if (inside !== undefined && code === inside + toClose) {
      if (this.#expects !== 'comma' && !isEmpty) return undefined;
      this.#open.pop();
      this.#at += 1;
      this.#expects = 'comma';
      return 'close';
    }
    if (this.#expects === 'value') return this.#value(code);
    if (this.#expects === 'name') return code === quote ? this.#name() : undefined;
    if (inside === undefined || code !== comma) return undefined;
    this.#at += 1;
    this.#expects = inside === openBrace ? 'name' : 'value';
    return 'comma';
  }

  #value(code: number): JsonToken | undefined {
    if (code === openBrace || code === openBracket) {
      if (this.#open.length === openMax) return undefined;
      this.#open.push(code);
      this.#at += 1;
      this.#expects = code === openBrace ? 'name' : 'value';
      this.#isEmpty = true;
      return 'open';
    }
    this.#expects = 'comma';
    if (code === quote) return this.#string() ? 'text' : undefined;
    if (this.#matches(number)) return 'number';
    return this.#matches(word) ? 'word' : undefined;
  }

  #name(): JsonToken | undefined {
    if (!this.#string()) return undefined;
    this.#nameEnd = this.#at;
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#at) !== colon) return undefined;
    this.#at += 1;
    this.#skipSpace();
    this.#expects = 'value';
    return 'name';
  }

  #string(): boolean {
    const end = stringEnd(this.#text, this.#at);
    if (end !== -1) this.#at = end;
    return end !== -1;
  }

  #matches(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  #skipSpace(): void {
    let code = this.#text.charCodeAt(this.#at);
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      this.#at += 1;
      code = this.#text.charCodeAt(this.#at);
    }
  }
}

/** Returns the position after a string, or -1 if it does not end. An even number of \ is before its quote. */
function stringEnd(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text[before] === '\\') before -= 1;
    if ((end - before) % 2 === 1) return end + 1;
  }
  return -1;
}

/**
 * Returns where a text stops being JSON. Returns the length of the text if it is only cut short, or wrong
 * only inside a string.
 */
export function jsonStopsAt(text: string): number {
  const tokens = new JsonTokens(text);
  while (tokens.next());
  return text.length - tokens.rest.length;
}

/** Parses valid JSON, and returns every number under one of `keys`, at any depth, as its source text. */
export function parseExact(text: string, keys: ReadonlySet<string>): unknown {
  const tokens = new JsonTokens(text);
  let quoted = '';
  let done = 0;
  let isWanted = false;
  while (tokens.next()) {
    if (isWanted && tokens.kind === 'number') {
      quoted += `${text.slice(done, tokens.from)}"${text.slice(tokens.from, tokens.to)}"`;
      done = tokens.to;
    }
    isWanted = tokens.kind === 'name' && keys.has(tokens.name);
  }
  return JSON.parse(quoted + text.slice(done));
}

/** Writes a value as JSON; undefined if it nests too deeply. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Whether a value is a JSON object: not an array, a scalar or null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Drops a byte order mark from the start of a text. RFC 8259 lets a reader ignore it; neither JSON.parse nor
 * Postgres does.
 */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}
