import { uuid } from '../../contract/ids.ts';
import { type FieldKind, kindBit, kindOfText, kindsOf } from './kinds.ts';
import { anyStep, stepOf, stepsOf } from './paths.ts';

/**
 * Distinct texts of a field beyond which it is no enumeration, and the longest that is noted as one
 * of them.
 */
const valuesMax = 20;
const valueLengthMax = 40;
const exampleLengthMax = 80;
/** Nesting that is looked into: what is deeper is data of the field that holds it. */
const depthMax = 8;
/** Fields of an object beyond which its keys are data, such as ids. */
export const fieldsMax = 300;
/** Fields of all records of a resource: what memory and catalogue have room for. */
const nodesMax = 5_000;
/**
 * Characters of their paths, and of their examples and values, of which each text counts as so many
 * more. Past the one no field is told apart, past the other no value is kept: a tree takes some 2
 * MB of memory, whoever chose the names. The service's own documents take a tenth of it.
 */
const pathCharactersMax = 500_000;
const valueCharactersMax = 500_000;
const textOverhead = 40;
/** Postgres refuses to index much longer ones. */
const pathLengthMax = 2_000;

/** What was seen at one place of the records of a resource. */
export interface SeenField {
  /** See `stepsOf`. */
  readonly path: string;
  readonly kinds: readonly FieldKind[];
  /** Records that have it and were seen since it was last told. */
  readonly records: number;
  /** The first value that was seen, cut short; null for objects and arrays. */
  readonly example: string | null;
  /** Distinct texts; null when they are no enumeration. */
  readonly values: readonly string[] | null;
  /** Whether its own fields are not told apart: they are too many, or too deep. */
  readonly collapsed: boolean;
}

interface FieldNode {
  readonly path: string;
  readonly depth: number;
  kinds: number;
  records: number;
  /** The record that was counted last. */
  last: number;
  example: string | null;
  values: ReadonlySet<string> | null;
  /**
   * Made with the first field: most have none, and an empty map takes more memory than all else.
   */
  fields: Map<string, FieldNode> | undefined;
  any: FieldNode | undefined;
  collapsed: boolean;
  /** Whether more was learnt than counts since it was last told. */
  fresh: boolean;
}

/** Most fields have none, and each set of its own would take memory. */
const noValues: ReadonlySet<string> = new Set();

function fieldNode(path: string, depth: number, fresh = true): FieldNode {
  return {
    ...{ path, depth, kinds: 0, records: 0, last: -1, example: null },
    ...{ values: noValues, fields: undefined, any: undefined, collapsed: false, fresh },
  };
}

/**
 * What the records of a resource turn out to hold. Records are any (the service announces no
 * fields), so each field that is ever seen is noted by where it stands and what kinds of values it
 * had. What it keeps is bounded, whatever the records are: an object with too many fields, or whose
 * keys are UUIDs, becomes a map, whose fields are all one.
 */
export class FieldTree {
  readonly #root: FieldNode;
  readonly #namesAlone: boolean;
  #nodes = 1;
  #pathCharacters = 0;
  #valueCharacters = 0;
  #record = 0;
  #news = 0;

  /**
   * @param namesAlone of records whose values are for few to read: none is kept as an example, or
   * as one of an enumeration
   */
  constructor({ namesAlone = false }: { readonly namesAlone?: boolean } = {}) {
    this.#root = fieldNode('', 0, false);
    this.#namesAlone = namesAlone;
  }

  /**
   * How often something was learnt that is more than a count, or another value: a field, or a kind
   * of values.
   */
  get news(): number {
    return this.#news;
  }

  /** Looks at a record as JSON.parse read it; what is no object is none. */
  observe(record: unknown): void {
    if (typeof record !== 'object' || record === null || Array.isArray(record)) return;
    this.#record += 1;
    this.#see(this.#root, record);
  }

  /**
   * What was seen and not told yet: `all`, or only what was learnt beside counts. Telling it anew
   * is `restore`.
   */
  take(all: boolean): SeenField[] {
    const taken: SeenField[] = [];
    for (const node of this.#everyNode()) {
      if (!node.fresh && (!all || node.records === 0)) continue;
      const { path, records, example, collapsed } = node;
      const values = node.values === null ? null : [...node.values];
      taken.push({ path, kinds: kindsOf(node.kinds), records, example, values, collapsed });
      node.records = 0;
      node.fresh = false;
    }
    return taken;
  }

  /** Takes back what could not be told. */
  restore(taken: readonly SeenField[]): void {
    const nodes = new Map([...this.#everyNode()].map((node) => [node.path, node]));
    for (const { path, records } of taken) {
      const node = nodes.get(path);
      if (node === undefined) continue;
      node.records += records;
      node.fresh = true;
    }
  }

  /**
   * Takes in what was known before. Bounds are of all that was ever seen, not of what one process
   * saw. Parents come before their fields.
   */
  know({ path, kinds, collapsed }: Pick<SeenField, 'path' | 'kinds' | 'collapsed'>): void {
    let node: FieldNode | undefined = this.#root;
    for (const step of stepsOf(path)) {
      if (node === undefined) return;
      node = step === 'any' ? this.#anyOf(node, false) : this.#fieldOf(node, step.field, false);
    }
    if (node?.path !== path) return;
    for (const kind of kinds) node.kinds |= kindBit[kind];
    if (collapsed && !node.collapsed) this.#collapse(node);
  }

  #see(node: FieldNode, value: unknown): void {
    if (node.last !== this.#record) {
      node.last = this.#record;
      node.records += 1;
    }
    if (typeof value === 'string') this.#seeText(node, value);
    else if (value === null) return;
    else if (typeof value === 'object') this.#seeParts(node, value);
    else {
      this.#learn(node, typeof value === 'number' ? kindBit.number : kindBit.boolean);
      if (node.example === null) node.example = this.#kept(String(value)) ?? null;
    }
  }

  #seeText(node: FieldNode, text: string): void {
    const { values } = node;
    if (values === null ? (node.kinds & kindBit.text) !== 0 : values.has(text)) return;
    const kind = kindOfText(text);
    this.#learn(node, kindBit[kind]);
    if (node.example === null)
      node.example = this.#kept(printable(text.slice(0, exampleLengthMax))) ?? null;
    if (values === null || kind !== 'text') return;
    const fits = values.size < valuesMax && text.length <= valueLengthMax;
    const value = fits ? this.#kept(printable(text)) : undefined;
    if (value === undefined) for (const one of values) this.#valueCharacters -= sizeOf(one);
    node.values = value === undefined ? null : new Set([...values, value]);
    // Another value is told with the counts: a young process meets one in almost every page.
    node.fresh = true;
  }

  #seeParts(node: FieldNode, value: object): void {
    const isArray = Array.isArray(value);
    this.#learn(node, isArray ? kindBit.array : kindBit.object);
    if (node.depth === depthMax) {
      if (!node.collapsed) this.#collapse(node);
      return;
    }
    if (isArray) {
      if (value.length === 0) return;
      const any = this.#anyOf(node);
      for (const element of value) this.#see(any, element);
      return;
    }
    for (const key in value) {
      const field = node.fields?.get(key) ?? this.#fieldOf(node, key);
      if (field !== undefined) this.#see(field, (value as Record<string, unknown>)[key]);
    }
  }

  #learn(node: FieldNode, kind: number): void {
    if ((node.kinds & kind) !== 0) return;
    node.kinds |= kind;
    this.#changed(node);
  }

  #changed(node: FieldNode): void {
    node.fresh = true;
    this.#news += 1;
  }

  #anyOf(node: FieldNode, fresh = true): FieldNode {
    if (node.any === undefined) {
      node.any = fieldNode(`${node.path}/${anyStep}`, node.depth + 1, fresh);
      this.#added(node.any);
    }
    return node.any;
  }

  /**
   * The field of a name, or what stands for it; undefined for a name that Postgres can't hold: nor
   * can it the record.
   */
  #fieldOf(node: FieldNode, name: string, fresh = true): FieldNode | undefined {
    const known = node.fields?.get(name);
    if (known !== undefined) return known;
    if (name.includes('\0') || !name.isWellFormed()) return undefined;
    if (!node.collapsed) {
      const path = `${node.path}/${stepOf(name)}`;
      const fits =
        (node.fields?.size ?? 0) < fieldsMax &&
        this.#nodes < nodesMax &&
        this.#pathCharacters + path.length <= pathCharactersMax &&
        Buffer.byteLength(path) <= pathLengthMax &&
        !uuid.test(name);
      if (fits) {
        const field = fieldNode(path, node.depth + 1, fresh);
        node.fields ??= new Map();
        node.fields.set(name, field);
        this.#added(field);
        return field;
      }
      this.#collapse(node);
    }
    return node.depth === depthMax ? undefined : this.#anyOf(node);
  }

  #added({ path }: FieldNode): void {
    this.#nodes += 1;
    this.#pathCharacters += path.length;
    this.#news += 1;
  }

  /** A text that is kept, while there is room. */
  #kept(text: string): string | undefined {
    if (this.#namesAlone) return undefined;
    if (this.#valueCharacters + sizeOf(text) > valueCharactersMax) return undefined;
    this.#valueCharacters += sizeOf(text);
    // What is cut from a larger text would keep all of that in memory.
    return Buffer.from(text).toString();
  }

  /** The fields of a map become one. A record's own fields stay: only those beyond them are one. */
  #collapse(node: FieldNode): void {
    node.collapsed = true;
    this.#changed(node);
    if (node === this.#root || node.fields === undefined) return;
    const any = this.#anyOf(node);
    for (const field of node.fields.values()) this.#merge(any, field);
    node.fields = undefined;
    this.#measure();
  }

  /** Counts anew what the nodes hold. */
  #measure(): void {
    this.#nodes = 0;
    this.#pathCharacters = 0;
    this.#valueCharacters = 0;
    for (const { path, example, values } of this.#everyNode()) {
      this.#nodes += 1;
      this.#pathCharacters += path.length;
      if (example !== null) this.#valueCharacters += sizeOf(example);
      for (const value of values ?? []) this.#valueCharacters += sizeOf(value);
    }
  }

  #merge(into: FieldNode, from: FieldNode): void {
    into.kinds |= from.kinds;
    into.records = Math.max(into.records, from.records);
    into.example ??= from.example;
    const values =
      into.values === null || from.values === null
        ? null
        : new Set([...into.values, ...from.values]);
    into.values = values === null || values.size > valuesMax ? null : values;
    this.#changed(into);
    if (from.any !== undefined) this.#merge(this.#anyOf(into), from.any);
    for (const [name, field] of from.fields ?? []) {
      const target = this.#fieldOf(into, name);
      if (target !== undefined) this.#merge(target, field);
    }
    if (from.collapsed && !into.collapsed) this.#collapse(into);
  }

  /** Parents before their fields. */
  *#everyNode(from: FieldNode = this.#root): Generator<FieldNode> {
    yield from;
    for (const field of from.fields?.values() ?? []) yield* this.#everyNode(field);
    if (from.any !== undefined) yield* this.#everyNode(from.any);
  }
}

const sizeOf = (text: string): number => text.length + textOverhead;

/** Postgres holds no NUL, and no half of a surrogate pair. */
const printable = (text: string): string => text.replaceAll('\0', '').toWellFormed();
