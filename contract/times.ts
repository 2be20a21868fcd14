/** Times for people and for programs. They are text, because a Date drops digits below a millisecond. */

/** Matches a time as Postgres prints it, or in RFC 3339. */
const printed = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d(?::?\d\d)?)$/;

/** Writes a time of Postgres in RFC 3339, with all its digits; returns any other text unchanged. */
export function rfc3339(text: string): string {
  const [, day, clock, fraction = '', zone = ''] = printed.exec(text) ?? [];
  if (day === undefined) return text;
  return `${day}T${clock}${fraction}${isUtc(zone) ? 'Z' : zone.length === 3 ? `${zone}:00` : zone}`;
}

const isUtc = (zone: string): boolean => /^(Z|[+-]00(:?00)?)$/.test(zone);

/**
 * Formats a time for people, in UTC and to the second: `2026-11-22 02:32:53Z`; returns any other text
 * unchanged.
 */
export function formatTime(text: string): string {
  const [, day, clock, , zone = ''] = printed.exec(text) ?? [];
  if (day === undefined) return text;
  if (isUtc(zone)) return `${day} ${clock}Z`;
  // The fraction is not passed on, so the Date loses no digits.
  return formatTime(new Date(rfc3339(`${day} ${clock}${zone}`)).toISOString());
}

/** Adds how long ago the time was, or how long it is until then. */
export function timeAgo(text: string, now = Date.now()): string {
  if (!printed.test(text)) return text;
  const seconds = Math.round((now - Date.parse(rfc3339(text))) / 1000);
  const far = formatSeconds(Math.abs(seconds));
  return `${formatTime(text)} (${seconds < 0 ? `in ${far}` : `${far} ago`})`;
}

/** Formats seconds in the best unit: `73 s`, `15 min`, `6 h`, `12 days`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}
