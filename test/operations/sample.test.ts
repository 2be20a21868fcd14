import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeSample, sampleOf } from '../../operations/audit/sample.ts';

const ids = (count: number) => Array.from({ length: count }, (_, at) => `company ${at}`);

test('a seed selects the same companies in any order, and another seed selects others', () => {
  const taken = sampleOf(ids(1_000), { share: 0.01, seed: 'a' });
  expect(taken).toHaveLength(10);
  expect(sampleOf(ids(1_000).reverse(), { share: 0.01, seed: 'a' })).toEqual(taken);
  expect(sampleOf(ids(1_000), { share: 0.01, seed: 'b' })).not.toEqual(taken);
  expect(sampleOf(ids(3), { share: 0.01, seed: 'a' })).toHaveLength(1);
  expect(sampleOf([], { share: 0.01, seed: 'a' })).toEqual([]);
});

test('every company is selected equally often', () => {
  const times = new Map<string, number>();
  for (let seed = 0; seed < 2_000; seed++)
    for (const id of sampleOf(ids(20), { share: 0.25, seed: String(seed) }))
      times.set(id, (times.get(id) ?? 0) + 1);
  // 500 each; five standard deviations are 97.
  for (const id of ids(20)) expect(Math.abs((times.get(id) ?? 0) - 500)).toBeLessThan(97);
});

test('a sample of all companies is exact, and a small sample bounds little', () => {
  expect(describeSample('a', { companies: 100, of: 100, different: 3 }).differentMax).toBe(3);
  expect(describeSample('a', { companies: 1, of: 10, different: 0 }).differentMax).toBe(9);
  expect(describeSample('a', { companies: 1, of: 10, different: 1 }).differentMax).toBe(10);
  expect(describeSample('a', { companies: 0, of: 0, different: 0 }).differentMax).toBe(0);
  // The rule of three says 3 %.
  expect(describeSample('a', { companies: 100, of: 100_000, different: 0 }).differentMax).toBeCloseTo(
    2_950,
    -2,
  );
});

/** Counts subsets exactly. */
const choose = (n: number, k: number): bigint =>
  k < 0 || k > n ? 0n : k === 0 ? 1n : (choose(n, k - 1) * BigInt(n - k + 1)) / BigInt(k);

test('at least 95 % of all samples bound the number of companies that differ, whatever it is', () => {
  const world = fc.integer({ min: 1, max: 40 }).chain((of) =>
    fc.record({
      of: fc.constant(of),
      companies: fc.integer({ min: 1, max: of }),
      marked: fc.integer({ min: 0, max: of }),
    }),
  );
  fc.assert(
    fc.property(world, ({ of, companies, marked }) => {
      let bounded = 0n;
      for (let different = 0; different <= companies; different++) {
        const samples = choose(marked, different) * choose(of - marked, companies - different);
        if (samples > 0n && describeSample('a', { companies, of, different }).differentMax >= marked)
          bounded += samples;
      }
      expect(Number((bounded * 10_000n) / choose(of, companies))).toBeGreaterThanOrEqual(9_500);
    }),
  );
});
