import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bisectListing, type ProbedPage, type WantedRecord } from '../../service/bisect.ts';

const perPage = 4;

/** Searches a listing in memory: the pages that it requests, and the ids that it misses. */
async function search(
  records: readonly WantedRecord[],
  wanted: readonly WantedRecord[],
  answer: (number: number, page: ProbedPage) => ProbedPage | undefined = (_, page) => page,
): Promise<{ unmet: string[]; asked: number[] }> {
  const pages: ProbedPage[] = [];
  for (let at = 0; at < records.length; at += perPage) {
    const slice = records.slice(at, at + perPage);
    pages.push({
      number: pages.length + 1,
      ids: slice.map(({ id }) => id),
      keys: slice.map(({ key }) => key),
    });
  }
  const asked: number[] = [];
  const read = async (number: number) => {
    asked.push(number);
    return answer(number, pages[number - 1] as ProbedPage);
  };
  const [first, last] = [pages[0], pages.at(-1)] as [ProbedPage, ProbedPage];
  return { unmet: await bisectListing(wanted, first, last, read), asked };
}

const keyOf = (time: number) => String(time).padStart(9, '0');
const listing = (times: readonly number[]): WantedRecord[] =>
  times.map((time, at) => ({ id: `r${at}`, key: keyOf(time) }));
const ascending = (a: number, b: number) => a - b;

describe('a record of an ordered listing', () => {
  test('is found at any position, in either order, with or without equal keys, and no page is read twice', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(40), { minLength: 9, maxLength: 120 }),
        fc.boolean(),
        fc.array(fc.nat(), { minLength: 1, maxLength: 5 }),
        async (times, newestFirst, picks) => {
          const sorted = [...times].sort(ascending);
          fc.pre(sorted[0] !== sorted.at(-1));
          const records = listing(newestFirst ? sorted.reverse() : sorted);
          const wanted = picks.map((pick) => records[pick % records.length] as WantedRecord);
          const { unmet, asked } = await search(records, wanted);
          expect(unmet).toEqual([]);
          expect(new Set(asked).size).toBe(asked.length);
        },
      ),
    );
  });

  test('costs one request for each halving of its pages, and none on the first or last page', async () => {
    const records = listing(Array.from({ length: perPage * 1_000 }, (_, at) => at));
    const [newest, middle] = [records.at(-1), records[2_222]] as [WantedRecord, WantedRecord];
    expect((await search(records, [newest])).asked).toEqual([]);
    const { unmet, asked } = await search(records, [middle]);
    expect(unmet).toEqual([]);
    expect(asked.length).toBeLessThanOrEqual(10);
    const many = await search(records, records.slice(2_200, 2_232));
    expect(many.unmet).toEqual([]);
    expect(many.asked.length).toBeLessThanOrEqual(20);
  });

  test('is returned as not found if it is absent', async () => {
    const records = listing(Array.from({ length: 60 }, (_, at) => 2 * at));
    const { unmet } = await search(records, [{ id: 'gone', key: keyOf(31) }]);
    expect(unmet).toEqual(['gone']);
  });
});

describe('a search ends with ids that it did not find', () => {
  const times = Array.from({ length: 60 }, (_, at) => at);
  const wanted = [{ id: 'r30', key: keyOf(30) }];

  test.each<[string, WantedRecord[], number]>([
    ['the listing is in no order', listing(times.map((time) => (time * 37) % 60)), 0],
    ['all keys are equal', listing(times.map(() => 7)), 0],
    ['a key is not known', listing(times).map((record) => ({ ...record, key: null })), 0],
    ['a page between is in no order', withDisorder(listing(times)), 1],
  ])('when %s', async (_, records, requests) => {
    const { unmet, asked } = await search(records, wanted);
    expect(unmet).toEqual(['r30']);
    expect(asked).toHaveLength(requests);
  });

  test('when the service answers with another page, or with an empty one', async () => {
    const records = listing(times);
    expect((await search(records, wanted, () => undefined)).unmet).toEqual(['r30']);
    const empty = (number: number) => ({ number, ids: [], keys: [] });
    expect((await search(records, wanted, empty)).unmet).toEqual(['r30']);
  });

  test('when the record has no creation time', async () => {
    const { unmet, asked } = await search(listing(times), [{ id: 'r30', key: null }]);
    expect([unmet, asked]).toEqual([['r30'], []]);
  });
});

/** The eighth page, which a search requests first, in reverse order. */
function withDisorder(records: readonly WantedRecord[]): WantedRecord[] {
  const at = 7 * perPage;
  return [
    ...records.slice(0, at),
    ...records.slice(at, at + perPage).reverse(),
    ...records.slice(at + perPage),
  ];
}
