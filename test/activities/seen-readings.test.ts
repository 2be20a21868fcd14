import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Seen, seenReadings } from '../../activities/reading/seen-readings.ts';
import { readIntervals } from '../../service/intervals.ts';

interface Reading {
  readonly start: number;
  readonly units: string;
}

const columnsOf = (page: readonly Reading[]) =>
  readIntervals(
    JSON.stringify(
      page.map(({ start, units }) => ({
        start: `2026-01-0${start}T00:00:00`,
        end: `2026-01-0${start}T01:00:00`,
        usage: '1',
        usageUnits: units,
      })),
    ),
    null,
  );

/** Reads pages as attempts do that are interrupted before the given pages. */
function seenOf(pages: readonly (readonly Reading[])[], resumedAt: readonly number[]): Seen | undefined {
  let walk = seenReadings(undefined);
  for (const [at, page] of pages.entries()) {
    if (resumedAt.includes(at)) walk = seenReadings(walk.soFar());
    walk.add(columnsOf(page));
  }
  return walk.soFar();
}

function isRepeated(pages: readonly (readonly Reading[])[]): boolean {
  const pagesOf = pages.flatMap((page) => [...new Set(page.map(({ start, units }) => `${start} ${units}`))]);
  return new Set(pagesOf).size < pagesOf.length;
}

const reading = fc.record({ start: fc.integer({ min: 1, max: 9 }), units: fc.constantFrom('kWh', 'kW') });
const anyPages = fc.array(fc.array(reading, { maxLength: 3 }), { maxLength: 4 });

test('a reading is repeated exactly if it came on two pages, whatever their order', () => {
  fc.assert(
    fc.property(anyPages, (pages) => {
      expect(seenOf(pages, [])?.repeated ?? false).toBe(isRepeated(pages));
    }),
  );
});

test('no repetition is missed by another attempt, and pages in order stay distinct', () => {
  const resumedAt = fc.subarray([0, 1, 2, 3]);
  fc.assert(
    fc.property(anyPages, resumedAt, fc.constantFrom(1, -1), (pages, resumed, direction) => {
      if (isRepeated(pages)) expect(seenOf(pages, resumed)?.repeated).toBe(true);
      const ordered = pages.map((page, at) =>
        page.map(({ units }) => ({ start: 5 + direction * at, units })),
      );
      expect(seenOf(ordered, resumed)?.repeated ?? false).toBe(false);
    }),
  );
});
