/** Times for people and for programs. They are text on the way: a Date has milliseconds, and times of records have more. */

/** A time as Postgres prints it, or as RFC 3339 writes it. */
const printed = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d(?::?\d\d)?)$/;

/** A time that Postgres printed in RFC 3339, to the last digit; any other text as it is. */
export function rfc3339(text: string): string {
  const [, day, clock, fraction = '', zone = ''] = printed.exec(text) ?? [];
  if (day === undefined) return text;
  return `${day}T${clock}${fraction}${isUtc(zone) ? 'Z' : zone.length === 3 ? `${zone}:00` : zone}`;
}

const isUtc = (zone: string): boolean => /^(Z|[+-]00(:?00)?)$/.test(zone);

/** A time as a person reads it, in UTC and to the second: `2026-11-22 02:32:53Z`; any other text as it is. */
export function shownTime(text: string): string {
  const [, day, clock, , zone = ''] = printed.exec(text) ?? [];
  if (day === undefined) return text;
  if (isUtc(zone)) return `${day} ${clock}Z`;
  // A whole second is all that a Date is asked for.
  return shownTime(new Date(rfc3339(`${day} ${clock}${zone}`)).toISOString());
}

/** The same, and how long ago that was or how long it takes until then. */
export function timeAgo(text: string, now = Date.now()): string {
  if (!printed.test(text)) return text;
  const seconds = Math.round((now - Date.parse(rfc3339(text))) / 1000);
  const far = shownSeconds(Math.abs(seconds));
  return `${shownTime(text)} (${seconds < 0 ? `in ${far}` : `${far} ago`})`;
}

/** So many seconds in the unit that tells most: `73 s`, `15 min`, `6 h`, `12 days`. */
export function shownSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}
