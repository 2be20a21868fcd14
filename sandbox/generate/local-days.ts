/** Finds when days begin in time zones. A call of Intl takes 50 µs, so results are kept. */
export interface LocalDays {
  /** Milliseconds since 1970 at which a date `YYYY-MM-DD` begins in a zone. */
  midnight(date: string, timeZone: string): number;
}

export function createLocalDays(): LocalDays {
  const known = new Map<string, number>();
  const formats = new Map<string, Intl.DateTimeFormat>();

  const formatOf = (timeZone: string): Intl.DateTimeFormat => {
    const format =
      formats.get(timeZone) ?? new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
    formats.set(timeZone, format);
    return format;
  };

  const compute = (date: string, timeZone: string): number => {
    const utc = Date.parse(`${date}T00:00:00Z`);
    const format = formatOf(timeZone);
    // Two steps, because the offset at UTC midnight may belong to the other side of a clock change.
    return utc - offsetAt(utc - offsetAt(utc, format), format);
  };

  return {
    midnight(date, timeZone) {
      const key = `${timeZone} ${date}`;
      const at = known.get(key) ?? compute(date, timeZone);
      known.set(key, at);
      return at;
    },
  };
}

/** Milliseconds that local time is ahead of UTC. */
function offsetAt(at: number, format: Intl.DateTimeFormat): number {
  const name = format.formatToParts(at).find((part) => part.type === 'timeZoneName')?.value;
  const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])(\d{2}):(\d{2})/.exec(name ?? '') ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
