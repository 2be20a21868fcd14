import { isDateText, uuid } from '../../contract/values.ts';

/** Kinds of values of a field, as far as JSON and their text show them. */
export const fieldKinds = [
  'boolean',
  'number',
  'decimal',
  'timestamp',
  'date',
  'uuid',
  'text',
  'object',
  'array',
] as const;
export type FieldKind = (typeof fieldKinds)[number];

/** A set of kinds is a bit mask: it is computed for every value that is written. */
export const kindBit = Object.fromEntries(
  fieldKinds.map((kind, at) => [kind, 1 << at]),
) as Readonly<Record<FieldKind, number>>;

export const kindsOf = (mask: number): FieldKind[] =>
  fieldKinds.filter((kind) => (mask & kindBit[kind]) !== 0);

/** At most six digits of a second: Postgres has no more, and would round. */
const timestamp =
  /^\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[-+](0\d|1[0-4])(:?[0-5]\d)?)?$/;
/** With a point and without leading zeros: other digits may be an account number. */
const decimal = /^-?(0|[1-9]\d{0,99})\.\d{1,99}$/;

/** Returns the narrowest kind that keeps all of a text. */
export function kindOfText(text: string): FieldKind {
  if (text.length === 36 && uuid.test(text)) return 'uuid';
  const first = text.charCodeAt(0);
  if (first !== 0x2d && !(first >= 0x30 && first <= 0x39)) return 'text';
  if (text.length === 10 && isDateText(text)) return 'date';
  if (timestamp.test(text) && isDateText(text.slice(0, 10))) return 'timestamp';
  return decimal.test(text) ? 'decimal' : 'text';
}

export type ColumnType = 'boolean' | 'numeric' | 'timestamptz' | 'date' | 'uuid' | 'text' | 'jsonb';

/**
 * Returns the narrowest type that holds every kind. More kinds only widen it, through text to
 * jsonb. Null for objects and nulls without other kinds, because their fields have columns.
 */
export function columnType(kinds: readonly FieldKind[]): ColumnType | null {
  const scalars = kinds.filter((kind) => kind !== 'object' && kind !== 'array');
  if (kinds.includes('array') || (kinds.includes('object') && scalars.length > 0)) return 'jsonb';
  if (scalars.length === 0) return null;
  const only = (...allowed: FieldKind[]) => scalars.every((kind) => allowed.includes(kind));
  if (only('boolean')) return 'boolean';
  if (only('number', 'decimal')) return 'numeric';
  if (only('timestamp')) return 'timestamptz';
  if (only('date')) return 'date';
  if (only('uuid')) return 'uuid';
  return 'text';
}
