import { describe, expect, test } from 'vitest';
import { judgePass } from '../../service/stability.ts';
import { walkPages } from '../../service/walk.ts';
import { type ListingShape, pageOf, someDocuments } from './listing.ts';
import type { Script } from './scripted-server.ts';
import { rejection, setup } from './setup.ts';

/** Walks a listing to its end, and returns what it yielded. */
async function walked(script: Script, options: { from?: number; signal?: AbortSignal } = {}) {
  const { server, client } = await setup(script);
  const walk = walkPages({
    client,
    endpoint: 'documents',
    params: { companyId: 'c1' },
    lane: 'backfill',
    ...options,
  });
  const ids: (string | null)[] = [];
  for await (const page of walk) ids.push(...page.ids);
  const report = walk.report();
  const asked = server.asked.map(({ query }) => Number(query.get('page')));
  return { ids, asked, report, judgement: judgePass(report.manifest) };
}

const listed = (count: number, shape: ListingShape = {}): Script => {
  const items = someDocuments(count);
  return (asked) => pageOf(items, asked, shape);
};

const idsOf = (count: number): string[] => someDocuments(count).map(({ id }) => id);

describe('a listing that does not change', () => {
  test.each([
    [1, [1]],
    [99, [1]],
    [100, [1]],
    [101, [1, 2]],
    [200, [1, 2]],
    [250, [1, 2, 3]],
  ])('of %i records is read once, page by page', async (count, pages) => {
    const { ids, asked, report, judgement } = await walked(listed(count));
    expect(ids).toEqual(idsOf(count));
    expect(asked).toEqual(pages);
    expect(report).toMatchObject({ ended: 'last', shrunk: false, pages: pages.length, rows: count });
    expect(judgement).toEqual({
      stable: true,
      reasons: [],
      distinct: count,
      total: count,
      pages: pages.length,
    });
  });

  test.each([0, 1] as const)(
    'that is empty, with totalPages %i, is one empty page',
    async (totalPagesWhenEmpty) => {
      const { ids, asked, judgement } = await walked(listed(0, { totalPagesWhenEmpty }));
      expect(ids).toEqual([]);
      expect(asked).toEqual([1]);
      expect(judgement).toEqual({ stable: true, reasons: [], distinct: 0, total: 0, pages: 1 });
    },
  );

  test.each([
    [['hasNext'], [1, 2]],
    [['totalPages'], [1, 2]],
    [
      ['hasNext', 'currentPage'],
      [1, 2],
    ],
    [
      ['totalDocuments', 'perPage', 'currentPage', 'totalPages'],
      [1, 2],
    ],
    // Without an end in the answers, one more page is requested, which is the last again.
    [
      ['hasNext', 'totalPages'],
      [1, 2, 3],
    ],
    [
      ['hasNext', 'totalPages', 'currentPage'],
      [1, 2, 3],
    ],
    [
      ['hasNext', 'totalPages', 'currentPage', 'totalDocuments', 'perPage'],
      [1, 2, 3],
    ],
  ])('may leave %j out of its envelope', async (omit, pages) => {
    const { ids, asked, report, judgement } = await walked(listed(200, { omit }));
    expect(ids).toEqual(idsOf(200));
    expect(asked).toEqual(pages);
    expect(report).toMatchObject({ ended: 'last', shrunk: false, pages: 2, rows: 200 });
    expect(judgement).toMatchObject({ stable: true, distinct: 200, pages: 2 });
  });

  test('without an end in its answers can also end with an empty page', async () => {
    const items = someDocuments(150);
    const { ids, asked, judgement } = await walked(({ query }) => {
      const page = Number(query.get('page'));
      return { json: { documents: items.slice((page - 1) * 100, page * 100) } };
    });
    expect(ids).toEqual(idsOf(150));
    expect(asked).toEqual([1, 2, 3]);
    expect(judgement).toMatchObject({ stable: true, distinct: 150 });
  });

  test('can have short pages, and an empty page, before the last', async () => {
    const pages = [['a', 'b'], ['c'], [], ['d']];
    const { ids, judgement } = await walked(({ query }) => {
      const page = Number(query.get('page'));
      const documents = (pages[page - 1] ?? []).map((id) => ({ id }));
      return { json: { documents, totalDocuments: 4, totalPages: 4, currentPage: page, hasNext: page < 4 } };
    });
    expect(ids).toEqual(['a', 'b', 'c', 'd']);
    expect(judgement.stable).toBe(true);
  });
});

describe('a listing that changes during the walk', () => {
  test('and becomes shorter repeats its last page, which is not read twice', async () => {
    let items = someDocuments(300);
    const { ids, asked, report, judgement } = await walked((request) => {
      if (request.number === 3) items = items.slice(0, 200);
      return pageOf(items, request);
    });
    expect(asked).toEqual([1, 2, 3]);
    expect(ids).toEqual(idsOf(200));
    expect(report).toMatchObject({ ended: 'shrunk', shrunk: true, pages: 2, rows: 200 });
    expect(judgement.stable).toBe(false);
    expect(judgement.reasons).toContain('1 of 3 pages was not the requested page');
  });

  test('and becomes empty answers with the first page', async () => {
    let items = someDocuments(300);
    const { report, judgement } = await walked((request) => {
      if (request.number === 2) items = [];
      return pageOf(items, request, { totalPagesWhenEmpty: 0 });
    });
    expect(report).toMatchObject({ ended: 'shrunk', shrunk: true, pages: 1 });
    expect(judgement.stable).toBe(false);
  });

  test('and becomes longer is read to its new end', async () => {
    let items = someDocuments(150);
    const { ids, judgement } = await walked((request) => {
      if (request.number === 2) items = someDocuments(350);
      return pageOf(items, request);
    });
    expect(ids).toEqual(idsOf(350));
    expect(judgement.reasons).toEqual([
      'the total changed between pages',
      '350 distinct records of a total of 150',
    ]);
  });
});

describe('a service that repeats pages', () => {
  test('ends the walk at the first repetition if it repeats one page forever', async () => {
    const { asked, report, judgement } = await walked(({ query }) => ({
      json: {
        documents: [{ id: 'a' }],
        currentPage: Number(query.get('page')),
        hasNext: true,
        totalDocuments: 1,
      },
    }));
    expect(asked).toEqual([1, 2]);
    expect(report).toMatchObject({ ended: 'repeated', pages: 1, rows: 1 });
    expect(judgement.stable).toBe(false);
  });

  test('ends the walk if it repeats the last page forever and says that another follows (service.md 7)', async () => {
    const items = someDocuments(200);
    const { ids, asked, report } = await walked((request) => {
      const { json } = pageOf(items, request) as { json: Record<string, unknown> };
      return { json: { ...json, hasNext: true } };
    });
    expect(asked).toEqual([1, 2, 3]);
    expect(ids).toEqual(idsOf(200));
    expect(report.ended).toBe('shrunk');
  });

  test('is recognized by its records if they have no ids', async () => {
    const { asked, report, judgement } = await walked(({ query }) => ({
      json: {
        documents: [{ name: Math.min(Number(query.get('page')), 3) }],
        currentPage: Number(query.get('page')),
        hasNext: true,
      },
    }));
    expect(asked).toEqual([1, 2, 3, 4]);
    expect(report.ended).toBe('repeated');
    expect(judgement.reasons).toContain('4 records have no id');
  });

  test('ends the walk after as many pages without a new record as there were pages before', async () => {
    const pages = [['a'], ['b', 'c'], [], ['d']];
    const { asked, report, judgement } = await walked(({ query }) => {
      const page = Number(query.get('page'));
      const documents = (pages[(page - 1) % 4] ?? []).map((id) => ({ id }));
      return { json: { documents, currentPage: page, hasNext: page < 20 } };
    });
    expect(asked).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(report).toMatchObject({ ended: 'repeated', pages: 7 });
    expect(judgement.reasons).toEqual(['4 records came twice', 'the last page was not reached']);
  });

  test('for a while is read to its end, because it may list records twice or without ids', async () => {
    const pages = [['a'], ['b'], ['a'], ['c'], ['b'], ['a'], ['c'], ['d']];
    const { ids, report } = await walked(({ query }) => {
      const page = Number(query.get('page'));
      const documents = (pages[page - 1] ?? []).map((id) => ({ id }));
      return { json: { documents, currentPage: page, hasNext: page < pages.length } };
    });
    expect(ids).toEqual(pages.flat());
    expect(report.ended).toBe('last');
    const without = await walked(({ query }) => {
      const page = Number(query.get('page'));
      return { json: { documents: [{ name: page % 2 }], currentPage: page, hasNext: page < 9 } };
    });
    expect(without.report).toMatchObject({ ended: 'last', rows: 9 });
  });

  test('is read up to a limit even if no page is repeated', async () => {
    const { asked, report, judgement } = await walked(({ query }) => {
      const page = Number(query.get('page'));
      return { json: { documents: [{ id: `d${page}` }], currentPage: page, totalPages: 3, hasNext: true } };
    });
    expect(asked).toHaveLength(103);
    expect(report).toMatchObject({ ended: 'bound', pages: 103 });
    expect(judgement.reasons).toEqual(['the last page was not reached']);
  });
});

describe('a walk', () => {
  test('starts at the page of a cursor', async () => {
    const { ids, asked } = await walked(listed(250), { from: 3 });
    expect(asked).toEqual([3]);
    expect(ids).toEqual(idsOf(250).slice(200));
  });

  test('that starts beyond the end finds no records', async () => {
    const { ids, report } = await walked(listed(250), { from: 7 });
    expect(ids).toEqual([]);
    expect(report).toMatchObject({ ended: 'shrunk', shrunk: true, pages: 0 });
  });

  test('reports its progress at any page, and requests no page in advance', async () => {
    const { server, client } = await setup(listed(300));
    const walk = walkPages({ client, endpoint: 'documents', params: { companyId: 'c1' }, lane: 'live' });
    expect(walk.report()).toMatchObject({ ended: null, pages: 0 });
    for await (const page of walk) {
      expect(walk.report()).toMatchObject({
        ended: null,
        pages: page.currentPage,
        rows: page.currentPage * 100,
      });
      if (page.currentPage === 2) break;
    }
    expect(server.asked).toHaveLength(2);
    expect(judgePass(walk.report().manifest).reasons).toContain('the last page was not reached');
  });

  test('ends when its signal aborts', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    const script: Script = (asked) => {
      if (asked.number === 2) controller.abort(reason);
      return pageOf(someDocuments(300), asked);
    };
    expect(await rejection(walked(script, { signal: controller.signal }))).toBe(reason);
  });
});
