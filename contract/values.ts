/** Matches a UUID with its hyphens, in any case. */
export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * `anySpelling` matches a UUID in any spelling that Postgres accepts: in capitals, without hyphens, in
 * braces.
 */
const digits = '[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}';
const anySpelling = new RegExp(`^(?:${digits}|\\{${digits}\\})$`, 'i');
const printed = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Spells a UUID as Postgres prints it; undefined for any other text. */
export function canonicalUuid(text: string): string | undefined {
  if (printed.test(text)) return text;
  if (!anySpelling.test(text)) return undefined;
  const hex = text.replace(/[{}-]/g, '').toLowerCase();
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20]].map(([from, to]) => hex.slice(from, to)).join('-');
}

/** Spells a UUID as Postgres prints it; returns any other id unchanged. */
export const canonicalId = (text: string): string => canonicalUuid(text) ?? text;

/**
 * How texts of records are read: the grammar of `metersync.read_number`, `read_time` and `read_date`,
 * for values that are judged before Postgres sees them. A test compares the two.
 */

/** Each digit matches in only one way, because a long text that is not a number would otherwise backtrack. */
const number = /^[ \t\n\v\f\r]*[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,4})?[ \t\n\v\f\r]*$/i;
const numberMax = 1_000;

/** Whether a text is a number, as an amount is written. */
export const isNumberText = (text: string): boolean => text.length <= numberMax && number.test(text);

const day = /^(\d{4})-(\d\d)-(\d\d)/;
const clock =
  /^([T ](([01]\d|2[0-3]):[0-5]\d(:([0-5]\d(\.\d+)?|60(\.0+)?))?|24:00(:00(\.0+)?)?)(Z|[-+](0\d|1[0-5])(:?[0-5]\d)?)?)?$/;
const unixSeconds = /^\d{9,11}$/;

/** Whether a text is ISO 8601 with a date that exists, of the years 1 to 9999, with or without a time. */
export function isDateText(text: string): boolean {
  const [, year, month, date] = (day.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || date === undefined || year === 0) return false;
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0;
  return date >= 1 && date <= days && clock.test(text.slice(10));
}

/** Whether a text is a time: a date as above, or Unix seconds. */
export const isTimeText = (text: string): boolean => unixSeconds.test(text) || isDateText(text);

/** At most six digits of a second: Postgres has no more, and would round. */
const timestamp =
  /^\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[-+](0\d|1[0-4])(:?[0-5]\d)?)?$/;
/** With a point and without leading zeros: other digits may be an account number. */
const decimal = /^-?(0|[1-9]\d{0,99})\.\d{1,99}$/;

/** What a column has to be to hold a text as it is. */
export type TextKind = 'uuid' | 'date' | 'timestamp' | 'decimal' | 'text';

/** Returns the narrowest kind that keeps all of a text. */
export function kindOfText(text: string): TextKind {
  if (text.length === 36 && uuid.test(text)) return 'uuid';
  const first = text.charCodeAt(0);
  if (first !== 0x2d && !(first >= 0x30 && first <= 0x39)) return 'text';
  if (text.length === 10 && isDateText(text)) return 'date';
  if (timestamp.test(text) && isDateText(text.slice(0, 10))) return 'timestamp';
  return decimal.test(text) ? 'decimal' : 'text';
}
