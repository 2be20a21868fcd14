import { createHash, type Hash } from 'node:crypto';
import { type FieldKind, fieldKinds, kindOfText } from '../../db/fields/kinds.ts';
import { anyStep, stepOf } from '../../db/fields/paths.ts';

/**
 * How a field changed between two versions. `sometimes`: it is in both, but missing from some records of one.
 */
const fieldChanges = ['appears', 'disappears', 'type', 'value', 'sometimes'] as const;
export type FieldChange = (typeof fieldChanges)[number];

/** A field in one version. */
export interface FieldSide {
  readonly types: readonly FieldKind[];
  /** Number of records with the field, null or not. */
  readonly records: number;
  /** Its value in the example, as JSON. */
  readonly example: string | null;
}

export interface FieldDifference {
  /** The field's path, as in ops.field_catalogue. */
  readonly path: string;
  readonly change: FieldChange;
  readonly from: FieldSide;
  readonly to: FieldSide;
  /** Number of records in which it differs. */
  readonly records: number;
  /** Id of the record of the examples. */
  readonly id: string;
  /**
   * For a field that disappears: the one that appears with the same values in every record; `movedFrom`
   * likewise.
   */
  readonly movedTo?: string;
  readonly movedFrom?: string;
}

const exampleLengthMax = 120;

/** A JSON number with its digits, so that numbers which are equal as floats stay distinct. */
class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

interface Side {
  readonly kinds: Set<FieldKind>;
  records: number;
  readonly values: Hash;
  readonly distinct: Set<string>;
}

interface Compared {
  readonly from: Side;
  readonly to: Side;
  records: number;
  kindsDiffer: boolean;
  inOneAlone: boolean;
  /** The first record in which the field differs, preferably one in which it is not null. */
  example: { readonly id: string; readonly from: string | null; readonly to: string | null } | undefined;
  exampleHasValue: boolean;
}

const side = (): Side => ({
  kinds: new Set(),
  records: 0,
  values: createHash('sha256'),
  distinct: new Set(),
});

/** Compares records pair by pair, and lists field by field how two versions differ. */
export class VersionDiff {
  readonly #fields = new Map<string, Compared>();
  #records = 0;

  get records(): number {
    return this.#records;
  }

  /** Compares the same record in both versions, given as JSON text. */
  compare(id: string, fromText: string, toText: string): void {
    this.#records += 1;
    const [from, to] = [valuesByPath(fromText), valuesByPath(toText)];
    for (const path of new Set([...from.keys(), ...to.keys()])) {
      this.#note(id, path, from.get(path), to.get(path));
    }
  }

  /** Lists every field that differs, in the order of the paths. */
  differences(): FieldDifference[] {
    const found = [...this.#fields]
      .filter(([, field]) => field.records > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([path, field]) => ({ path, field, change: changeOf(field) }));
    const digests = new Map(
      found.map(({ path, field, change }) => {
        const own = change === 'appears' ? field.to : field.from;
        // A value that is the same in all records proves no move.
        return [path, own.distinct.size > 1 ? own.values.copy().digest('hex') : path];
      }),
    );
    return found.map(({ path, field, change }) => {
      const other = found.find(
        (candidate) =>
          digests.get(candidate.path) === digests.get(path) &&
          ((change === 'disappears' && candidate.change === 'appears') ||
            (change === 'appears' && candidate.change === 'disappears')),
      );
      const { example } = field;
      return {
        path,
        change,
        records: field.records,
        id: example?.id ?? '',
        from: fieldSide(field.from, example?.from ?? null),
        to: fieldSide(field.to, example?.to ?? null),
        ...(other === undefined ? {} : { [change === 'appears' ? 'movedFrom' : 'movedTo']: other.path }),
      };
    });
  }

  #note(id: string, path: string, from: unknown[] | undefined, to: unknown[] | undefined): void {
    let field = this.#fields.get(path);
    if (field === undefined) {
      field = {
        from: side(),
        to: side(),
        records: 0,
        kindsDiffer: false,
        inOneAlone: false,
        example: undefined,
        exampleHasValue: false,
      };
      this.#fields.set(path, field);
    }
    const texts = [add(field.from, id, from), add(field.to, id, to)] as const;
    if (texts[0] === texts[1]) return;
    field.records += 1;
    if (from === undefined || to === undefined) field.inOneAlone = true;
    else if (kindsIn(from) !== kindsIn(to)) field.kindsDiffer = true;
    const hasValue = [...(from ?? []), ...(to ?? [])].some((value) => value !== null);
    if (field.example === undefined || (hasValue && !field.exampleHasValue)) {
      field.example = { id, from: texts[0], to: texts[1] };
      field.exampleHasValue = hasValue;
    }
  }
}

function changeOf({ from, to, kindsDiffer, inOneAlone }: Compared): FieldChange {
  if (from.records === 0) return 'appears';
  if (to.records === 0) return 'disappears';
  return kindsDiffer ? 'type' : inOneAlone ? 'sometimes' : 'value';
}

/** Notes the values of a field in a record; returns them as text. */
function add(to: Side, id: string, values: readonly unknown[] | undefined): string | null {
  if (values === undefined) return null;
  to.records += 1;
  for (const value of values) {
    const kind = kindOf(value);
    if (kind !== undefined) to.kinds.add(kind);
  }
  const texts = values.map((value) => (value instanceof Digits ? value.text : JSON.stringify(value)));
  const text = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(',')}]`;
  to.values.update(`${id}\0${text}\0`);
  if (to.distinct.size < 2) to.distinct.add(text);
  return text;
}

const fieldSide = ({ kinds, records }: Side, example: string | null): FieldSide => ({
  types: fieldKinds.filter((kind) => kinds.has(kind)),
  records,
  example:
    example !== null && example.length > exampleLengthMax
      ? `${example.slice(0, exampleLengthMax)}…`
      : example,
});

const kindsIn = (values: readonly unknown[]): string =>
  [...new Set(values.map((value) => kindOf(value) ?? 'null'))].sort().join();

function kindOf(value: unknown): FieldKind | undefined {
  if (value === null) return undefined;
  if (typeof value === 'string') return kindOfText(value);
  if (typeof value === 'boolean') return 'boolean';
  if (value instanceof Digits) return 'number';
  return Array.isArray(value) ? 'array' : 'object';
}

/** Collects the values of a record by path; those of array elements share a path, in order. */
function valuesByPath(text: string): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>();
  const visit = (path: string, value: unknown): void => {
    const isObject = typeof value === 'object' && value !== null && !(value instanceof Digits);
    // Objects and arrays are noted as empty: their fields are compared by themselves.
    const noted = !isObject ? value : Array.isArray(value) ? [] : {};
    const values = found.get(path);
    if (values === undefined) found.set(path, [noted]);
    else values.push(noted);
    if (!isObject) return;
    if (Array.isArray(value)) for (const element of value) visit(`${path}/${anyStep}`, element);
    else for (const [name, inner] of Object.entries(value)) visit(`${path}/${stepOf(name)}`, inner);
  };
  visit('', parseDigits(text));
  return found;
}

const parseDigits = (text: string): unknown =>
  JSON.parse(text, (_key, value: unknown, read?: { readonly source?: string }) =>
    typeof value === 'number' ? new Digits(read?.source ?? String(value)) : value,
  );
