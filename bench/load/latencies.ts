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
  /** The latency in milliseconds at a percentile. */
  percentile(percent: number): number;
  /** Encodes the latencies for another process, which reads them with `mergedLatencies`. */
  encode(): string;
}

export function createLatencies(): Latencies {
  return wrap(build(options));
}

/** Decodes and merges the latencies of other processes. */
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
    encode: () => encodeIntoCompressedBase64(histogram),
  };
}
