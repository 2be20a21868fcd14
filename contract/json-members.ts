import { stringEnd, withoutByteOrderMark } from './exact-json.ts';

/** A JSON text without some of its members. */
export interface CutText {
  /** The text up to where it stops being JSON. Bytes that were not cut are unchanged. */
  readonly text: string;
  /** The text from there on; empty if all of it is JSON. */
  readonly rest: string;
}

/** An object or array that is open at the current position. */
interface Container {
  readonly isObject: boolean;
  /** Whether an earlier member is kept. */
  hasKept: boolean;
  /** Position of the comma before the current member. */
  comma: number;
  /** Position behind the last value. */
  valueEnd: number;
  /** Start of the members that are to be cut next; -1 without any. */
  cutFrom: number;
}

/**
 * Objects and arrays open at once, each some 70 bytes of memory: a text that opens more is cut there.
 * Postgres takes far fewer; a packed answer of some kB could open 64 million.
 */
const openMax = 1_000_000;

type Expected = 'value' | 'value or end' | 'name' | 'name or end' | 'comma or end' | 'nothing';

const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])|(?:true|false|null)(?!\w)/y;

/**
 * Cuts members out of objects at any depth, with their commas. Reads the text once, without recursion:
 * nesting costs memory, up to a bound, and no stack. Does not judge the contents of strings, so a NUL or
 * a bad escape in one stops nothing.
 * @param isCut whether to cut a member, by its name and the position of its value
 */
export function cutMembers(text: string, isCut: (name: string, valueAt: number) => boolean): CutText {
  return new Cutter(text, isCut).cut();
}

/** Returns where a text stops being JSON; its length if it is only cut short, or wrong inside a string. */
export function jsonStopsAt(text: string): number {
  return text.length - cutMembers(text, () => false).rest.length;
}

class Cutter {
  readonly #text: string;
  readonly #isCut: (name: string, valueAt: number) => boolean;
  readonly #open: Container[] = [];
  readonly #kept: string[] = [];
  /** The text before this position is in `kept`, or was cut. */
  #done = 0;
  #at = 0;
  #expected: Expected = 'value';
  /** How many containers are open around the value that is being cut; 0 without one. */
  #hiddenIn = 0;
  /** Whether as many containers are open as may be. */
  #isFull = false;

  constructor(text: string, isCut: (name: string, valueAt: number) => boolean) {
    this.#text = text;
    this.#isCut = isCut;
  }

  cut(): CutText {
    const text = this.#text;
    this.#at = text.length - withoutByteOrderMark(text).length;
    for (;;) {
      this.#skipSpace();
      if (this.#at === text.length || !this.#step()) break;
    }
    const within = this.#open[(this.#hiddenIn || this.#open.length) - 1];
    if (within !== undefined && within.cutFrom !== -1) {
      // The cut member has no certain end here, so everything that follows is cut, too.
      this.#drop(within.cutFrom, text.length);
      this.#at = text.length;
    }
    this.#kept.push(text.slice(this.#done, this.#at));
    return { text: this.#kept.join(''), rest: this.#isFull ? '' : text.slice(this.#at) };
  }

  /** Takes the next token; false if JSON does not allow it there. */
  #step(): boolean {
    const first = this.#text[this.#at];
    switch (this.#expected) {
      case 'nothing':
        return false;
      case 'name or end':
        return first === '}' ? this.#close() : this.#member();
      case 'name':
        return this.#member();
      case 'value or end':
        return first === ']' ? this.#close() : this.#value();
      case 'value':
        return this.#value();
      case 'comma or end':
        return this.#commaOrEnd(first);
    }
  }

  #value(): boolean {
    const text = this.#text;
    const first = text[this.#at];
    if (first === '{' || first === '[') {
      this.#isFull = this.#open.length === openMax;
      if (this.#isFull) return false;
      const isObject = first === '{';
      this.#open.push({ isObject, hasKept: false, comma: -1, valueEnd: -1, cutFrom: -1 });
      this.#expected = isObject ? 'name or end' : 'value or end';
      this.#at += 1;
      return true;
    }
    const end = first === '"' ? stringEnd(text, this.#at) : scalarEnd(text, this.#at);
    if (end === -1) return false;
    this.#at = end;
    this.#valueEnded();
    return true;
  }

  /** Takes a name and the colon after it. */
  #member(): boolean {
    const text = this.#text;
    const nameAt = this.#at;
    const nameEnd = text[nameAt] === '"' ? stringEnd(text, nameAt) : -1;
    if (nameEnd === -1) return false;
    this.#at = nameEnd;
    this.#skipSpace();
    if (text[this.#at] !== ':') {
      this.#at = nameAt;
      return false;
    }
    this.#at += 1;
    this.#skipSpace();
    this.#expected = 'value';
    if (this.#hiddenIn === 0) this.#judge(nameAt, nameEnd);
    return true;
  }

  #judge(nameAt: number, nameEnd: number): void {
    const within = this.#open[this.#open.length - 1] as Container;
    const from = within.hasKept ? within.comma : nameAt;
    const name = decoded(this.#text.slice(nameAt + 1, nameEnd - 1));
    if (this.#isCut(name, this.#at)) {
      this.#hiddenIn = this.#open.length;
      if (within.cutFrom === -1) within.cutFrom = from;
      return;
    }
    if (within.cutFrom !== -1) this.#drop(within.cutFrom, from);
    within.cutFrom = -1;
    within.hasKept = true;
  }

  #commaOrEnd(first: string | undefined): boolean {
    const within = this.#open[this.#open.length - 1] as Container;
    if (first === (within.isObject ? '}' : ']')) return this.#close();
    if (first !== ',') return false;
    within.comma = this.#at;
    this.#at += 1;
    this.#expected = within.isObject ? 'name' : 'value';
    return true;
  }

  #close(): boolean {
    const closed = this.#open.pop() as Container;
    if (closed.cutFrom !== -1) this.#drop(closed.cutFrom, closed.valueEnd);
    this.#at += 1;
    this.#valueEnded();
    return true;
  }

  #valueEnded(): void {
    const within = this.#open[this.#open.length - 1];
    if (this.#open.length === this.#hiddenIn) this.#hiddenIn = 0;
    if (within !== undefined) within.valueEnd = this.#at;
    this.#expected = within === undefined ? 'nothing' : 'comma or end';
  }

  #drop(from: number, to: number): void {
    this.#kept.push(this.#text.slice(this.#done, from));
    this.#done = to;
  }

  #skipSpace(): void {
    let code = this.#text.charCodeAt(this.#at);
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      this.#at += 1;
      code = this.#text.charCodeAt(this.#at);
    }
  }
}

function scalarEnd(text: string, at: number): number {
  scalar.lastIndex = at;
  return scalar.test(text) ? scalar.lastIndex : -1;
}

/** Decodes the escapes of a name; returns a name with invalid ones unchanged. */
function decoded(name: string): string {
  if (!name.includes('\\')) return name;
  try {
    return JSON.parse(`"${name}"`) as string;
  } catch {
    return name;
  }
}
