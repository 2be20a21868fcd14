import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js';

/** Three digits of precision, from a microsecond to a minute. */
const options = {
  lowestDiscernibleValue: 1,
  highestTrackableValue: 60_000_000,
  numberOfSignificantValueDigits: 3,
} as const;

/** Latencies as an HDR histogram of microseconds. */
export interface Latencies {
  add(ms: number): void;
  /** Milliseconds below which this part of the latencies lies. */
  percentile(percent: number): number;
  readonly count: number;
  /** For another process, which reads it with `mergedLatencies`. */
  encode(): string;
}

export function createLatencies(): Latencies {
  return wrap(build(options));
}

/** Reads what other processes encoded, all together. */
export function mergedLatencies(encoded: readonly string[]): Latencies {
  const all = build(options);
  for (const one of encoded) all.add(decodeFromCompressedBase64(one) as typeof all);
  return wrap(all);
}

function wrap(histogram: Histogram): Latencies {
  return {
    add: (ms) => histogram.recordValue(Math.max(1, Math.round(ms * 1000))),
    percentile: (percent) => {
      if (histogram.totalCount === 0) throw new Error('no latency was measured');
      return histogram.getValueAtPercentile(percent) / 1000;
    },
    get count() {
      return histogram.totalCount;
    },
    encode: () => encodeIntoCompressedBase64(histogram),
  };
}
