/** Timestamps of the service, `YYYY-MM-DDTHH:MM:SS.ffffff` in UTC (service.md 2), as microseconds. */
export type Micros = bigint;

const thousand = 1000n;

export function toText(at: Micros): string {
  const micros = at % thousand;
  const millis = new Date(Number(at / thousand)).toISOString().slice(0, 23);
  return millis + micros.toString().padStart(3, '0');
}

/** Whether `YYYY-MM-DD` exists and Postgres supports it. Date.parse turns February 31 into March 3. */
export function isDay(date: string): boolean {
  const millis = Date.parse(`${date}T00:00:00Z`);
  return date >= '0001' && !Number.isNaN(millis) && new Date(millis).toISOString().startsWith(date);
}

/** Reads `YYYY-MM-DD[T ]HH:MM:SS[.f{1,6}]` as UTC, and `YYYY-MM-DD` as its midnight. */
export function fromText(text: string): Micros {
  const [, date = '', time = '00:00:00', fraction = ''] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?)?$/.exec(text) ?? [];
  const millis = Date.parse(`${date}T${time}Z`);
  if (Number.isNaN(millis) || !isDay(date)) throw new RangeError(`not a timestamp: ${text}`);
  return BigInt(millis) * thousand + BigInt(fraction.padEnd(6, '0'));
}

export const secondsToMicros = (seconds: number): Micros => BigInt(Math.round(seconds * 1_000_000));

/** The time of a change: now, or just after `before`, because each change moves `updated` forward. */
export const laterThan = (before: Micros, now: Micros): Micros => (now > before ? now : before + 1n);

/** Adds whole days to a date `YYYY-MM-DD`. */
export function addDays(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

/** Real time in microseconds. */
export type RealTime = () => Micros;

/** The service's own time. It runs at `scale` times the real speed, and a test can move it forward. */
export interface ServiceClock {
  now(): Micros;
  advance(seconds: number): void;
  /** Microseconds by which service time is ahead. It is stored: a restart does not set the clock back. */
  offset(): Micros;
  /** Real milliseconds until the service's clock shows `at`, or 0 if that time has passed. */
  millisUntil(at: Micros): number;
}

export function createClock(real: RealTime, offset: Micros = 0n, scale = 1): ServiceClock {
  const start = real();
  let ahead = offset;
  const factor = BigInt(Math.round(scale * 1000));
  const now = () => start + ((real() - start) * factor) / 1000n + ahead;
  return {
    now,
    advance: (seconds) => {
      ahead += secondsToMicros(seconds);
    },
    offset: () => now() - real(),
    millisUntil: (at) => Math.max(0, Math.ceil(Number(at - now()) / 1000 / scale)),
  };
}

/** The machine's clock in microseconds, which Date does not have. It never goes back. */
export function createRealTime(): RealTime {
  const start = BigInt(Date.now()) * 1000n;
  const tick = process.hrtime.bigint();
  return () => start + (process.hrtime.bigint() - tick) / 1000n;
}
