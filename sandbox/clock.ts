import { type Micros, secondsToMicros } from './timestamps.ts';

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
