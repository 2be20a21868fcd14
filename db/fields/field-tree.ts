import { isObject } from '../../contract/json.ts';
import { uuid } from '../../contract/values.ts';
import { holdable } from '../records/unholdable.ts';
import { type FieldKind, kindBit, kindOfText, kindsOf } from './kinds.ts';
import { anyStep, stepOf, stepsOf } from './paths.ts';

/** Maximum number and length of the distinct texts of a field that is an enumeration. */
const valuesMax = 20;
const valueLengthMax = 40;
const exampleLengthMax = 80;
/** Depth of nesting that is recorded: deeper values are data of the field that holds them. */
const depthMax = 8;
/** If an object has more fields than this, its keys are data, such as ids. */
export const fieldsMax = 300;
/** Maximum number of fields of a resource: with the longest paths, a tree takes some 10 MB. */
const nodesMax = 5_000;
/** Longest path in bytes. */
const pathLengthMax = 500;

/** The values observed at one place of the records of a resource. */
export interface SeenField {
  /** See `stepsOf`. */
  readonly path: string;
  readonly kinds: readonly FieldKind[];
  /** Records with this field since the last `take`. */
  readonly records: number;
  /** The first value, cut short; null for objects and arrays. */
  readonly example: string | null;
  /** Distinct texts; null if the field is not an enumeration. */
  readonly values: readonly string[] | null;
  /** Whether it is a map: its fields are too many, or too deep, to be catalogued separately. */
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
  /** Created with the first field: most nodes have none, and an empty map takes much memory. */
  fields: Map<string, FieldNode> | undefined;
  any: FieldNode | undefined;
  collapsed: boolean;
  /** Whether anything other than counts changed since the last `take`. */
  fresh: boolean;
}

/** Shared by nodes without values, to save memory. */
const noValues: ReadonlySet<string> = new Set();

function fieldNode(path: string, depth: number, fresh = true): FieldNode {
  return {
    path,
    depth,
    kinds: 0,
    records: 0,
    last: -1,
    example: null,
    values: noValues,
    fields: undefined,
    any: undefined,
    collapsed: false,
    fresh,
  };
}

/**
 * The fields of a resource's records, discovered from the records because the service does not
 * announce them. To limit a tree's memory, an object with too many fields, or with UUIDs as keys,
 * becomes a map, whose fields all count as one field.
 */
export class FieldTree {
  readonly #root = fieldNode('', 0, false);
  #nodes = 1;
  #record = 0;
  #news = 0;

  /** The number of new fields and new kinds of values so far, not of records or new values. */
  get news(): number {
    return this.#news;
  }

  /** Adds a record, as JSON.parse returned it; ignores anything but objects. */
  observe(record: unknown): void {
    if (!isObject(record)) return;
    this.#record += 1;
    this.#see(this.#root, record);
  }

  /** Takes all fields observed since the last `take`, or only if more than their counts changed. */
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

  /** Puts back what could not be written. */
  restore(taken: readonly SeenField[]): void {
    const nodes = new Map([...this.#everyNode()].map((node) => [node.path, node]));
    for (const { path, records } of taken) {
      const node = nodes.get(path);
      if (node === undefined) continue;
      node.records += records;
      node.fresh = true;
    }
  }

  /** Adds a catalogued field after its parent, so that bounds apply to all processes together. */
  add({ path, kinds, collapsed }: Pick<SeenField, 'path' | 'kinds' | 'collapsed'>): void {
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
      node.example ??= String(value);
    }
  }

  #seeText(node: FieldNode, text: string): void {
    const { values } = node;
    if (values === null ? (node.kinds & kindBit.text) !== 0 : values.has(text)) return;
    const kind = kindOfText(text);
    this.#learn(node, kindBit[kind]);
    node.example ??= copyOf(text.slice(0, exampleLengthMax));
    if (values === null || kind !== 'text') return;
    const fits = values.size < valuesMax && text.length <= valueLengthMax;
    node.values = fits ? new Set([...values, copyOf(text)]) : null;
    // A new value only makes it fresh: a young process meets new values on almost every page.
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
      this.#added();
    }
    return node.any;
  }

  /** Returns a field by name, as Postgres holds the name, or a map's only field. */
  #fieldOf(node: FieldNode, name: string, fresh = true): FieldNode | undefined {
    const existing = node.fields?.get(name);
    if (existing !== undefined) return existing;
    if (holdable(name) !== name) return this.#fieldOf(node, holdable(name), fresh);
    if (!node.collapsed) {
      const path = `${node.path}/${stepOf(name)}`;
      const fits =
        (node.fields?.size ?? 0) < fieldsMax &&
        this.#nodes < nodesMax &&
        Buffer.byteLength(path) <= pathLengthMax &&
        !uuid.test(name);
      if (fits) {
        const field = fieldNode(path, node.depth + 1, fresh);
        node.fields ??= new Map();
        node.fields.set(name, field);
        this.#added();
        return field;
      }
      this.#collapse(node);
    }
    return node.depth === depthMax ? undefined : this.#anyOf(node);
  }

  #added(): void {
    this.#nodes += 1;
    this.#news += 1;
  }

  /** Makes a node a map: its fields become one. A record itself keeps its existing fields. */
  #collapse(node: FieldNode): void {
    node.collapsed = true;
    this.#changed(node);
    if (node === this.#root || node.fields === undefined) return;
    const any = this.#anyOf(node);
    for (const field of node.fields.values()) this.#merge(any, field);
    node.fields = undefined;
    this.#nodes = [...this.#everyNode()].length;
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

  /** Yields parents before their fields. */
  *#everyNode(from: FieldNode = this.#root): Generator<FieldNode> {
    yield from;
    for (const field of from.fields?.values() ?? []) yield* this.#everyNode(field);
    if (from.any !== undefined) yield* this.#everyNode(from.any);
  }
}

/** Copies a text as Postgres holds it, since a slice holds the larger text. */
const copyOf = (text: string): string => Buffer.from(holdable(text)).toString();
