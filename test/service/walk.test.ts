import { describe, expect, test } from 'vitest';
import { judgePass } from '../../service/stability.ts';
import { walkPages } from '../../service/walk.ts';
import { type ListingShape, pageOf, someDocuments } from './listing.ts';
import type { Reply, Script } from './scripted-server.ts';
import { rejection, setup } from './setup.ts';

/** Walks a listing to its end, and returns what it yielded. */
async function walked(script: Script, options: { from?: number; signal?: AbortSignal } = {}) {
  const { server, client } = await setup(script);
  const params = { companyId: 'c1' };
  const walk = walkPages({ client, endpoint: 'documents', params, lane: 'backfill', ...options });
  const ids: (string | null)[] = [];
  for await (const page of walk) ids.push(...page.ids);
  const report = walk.report();
  const asked = server.asked.map(({ query }) => Number(query.get('page')));
  return { ids, asked, report, judgement: judgePass(report.manifest) };
}

/** A listing of so many records that does not change. */
const listed = (count: number, shape: ListingShape = {}): Script => {
  const items = someDocuments(count);
  return (asked) => pageOf(items, asked, shape);
};

/** A listing that has another number of records from a request on. */
const changing = (before: number, after: number, from: number): Script => {
  const [first, later] = [someDocuments(before), someDocuments(after)];
  return (asked) => pageOf(asked.number < from ? first : later, asked, { totalPagesWhenEmpty: 0 });
};

/** Pages by their ids. Each says only what `more` says, and its number. */
const pages =
  (all: readonly string[][], more: (page: number) => object, names: 'id' | 'name' = 'id'): Script =>
  ({ query }) => {
    const page = Number(query.get('page'));
    const documents = (all[page - 1] ?? []).map((id) => ({ [names]: id }));
    return { json: { documents, currentPage: page, ...more(page) } } satisfies Reply;
  };

const repeated = (all: readonly string[][], times: number) => Array.from({ length: times }, () => all).flat();
const endless = Array.from({ length: 200 }, (_, n) => [`d${n + 1}`]);

/** Listings by what is special about them, with the page at which the walk starts. */
const listings: Readonly<Record<string, Script | readonly [Script, from: number]>> = {
  'one record': listed(1),
  'a page that is almost full': listed(99),
  'a full page': listed(100),
  'a record more than a page': listed(101),
  'two full pages': listed(200),
  'three pages': listed(250),
  'from the page of a cursor': [listed(250), 3],
  'from beyond the end': [listed(250), 7],
  'no records, with totalPages 0': listed(0, { totalPagesWhenEmpty: 0 }),
  'no records, with totalPages 1': listed(0, { totalPagesWhenEmpty: 1 }),
  ...Object.fromEntries(
    [
      ['hasNext'],
      ['totalPages'],
      ['hasNext', 'currentPage'],
      ['totalDocuments', 'perPage', 'currentPage', 'totalPages'],
      // Without an end in the answers, one more page is requested, which is the last again.
      ['hasNext', 'totalPages'],
      ['hasNext', 'totalPages', 'currentPage'],
      ['hasNext', 'totalPages', 'currentPage', 'totalDocuments', 'perPage'],
    ].map((omit) => [`without ${omit.join(', ')}`, listed(200, { omit })]),
  ),
  'an empty page as the end': ({ query }) => {
    const page = Number(query.get('page'));
    return { json: { documents: someDocuments(150).slice((page - 1) * 100, page * 100) } };
  },
  'short and empty pages before the last': pages([['a', 'b'], ['c'], [], ['d']], (page) => ({
    totalDocuments: 4,
    totalPages: 4,
    hasNext: page < 4,
  })),
  'becomes shorter': changing(300, 200, 3),
  'becomes empty': changing(300, 0, 2),
  'becomes longer': changing(150, 350, 2),
  'repeats one page forever': pages(repeated([['a']], 9), () => ({ hasNext: true, totalDocuments: 1 })),
  'repeats the last page forever and says that another follows (service.md 7)': (asked) => {
    const { json } = pageOf(someDocuments(200), asked) as { json: object };
    return { json: { ...json, hasNext: true } };
  },
  'repeats a page whose records have no ids': pages(
    [['1'], ['2'], ['3'], ['3']],
    () => ({ hasNext: true }),
    'name',
  ),
  'repeats all of its pages': pages(repeated([['a'], ['b', 'c'], [], ['d']], 5), (page) => ({
    hasNext: page < 20,
  })),
  'repeats pages for a while': pages([['a'], ['b'], ['a'], ['c'], ['b'], ['a'], ['c'], ['d']], (page) => ({
    hasNext: page < 8,
  })),
  'repeats records without ids for a while': pages(
    repeated([['1'], ['2']], 5),
    (page) => ({ hasNext: page < 9 }),
    'name',
  ),
  'never ends': pages(endless, () => ({ totalPages: 3, hasNext: true })),
};

test('each listing is read as the golden file says', async () => {
  const told: string[] = [];
  for (const [what, listing] of Object.entries(listings)) {
    const [script, from] = typeof listing === 'function' ? [listing] : listing;
    const { ids, asked, report, judgement } = await walked(script, from === undefined ? {} : { from });
    expect(ids, what).toHaveLength(report.rows);
    const { ended, shrunk, pages, rows } = report;
    const { stable, reasons, distinct, total } = judgement;
    told.push(
      `# ${what}`,
      `asked ${asked[0]} to ${asked.at(-1)} in ${asked.length} requests: ${pages} pages, ${rows} records, ended ${ended}${shrunk ? ', shrunk' : ''}`,
      stable ? `stable: ${distinct} records, total ${total}` : `not stable: ${reasons.join('; ')}`,
    );
  }
  await expect(`${told.join('\n')}\n`).toMatchFileSnapshot('golden/walks.txt');
});

describe('a walk', () => {
  test('reports its progress at any page, and requests no page in advance', async () => {
    const { server, client } = await setup(listed(300));
    const walk = walkPages({ client, endpoint: 'documents', params: { companyId: 'c1' }, lane: 'live' });
    expect(walk.report()).toMatchObject({ ended: null, pages: 0 });
    for await (const { currentPage } of walk) {
      expect(walk.report()).toMatchObject({ ended: null, pages: currentPage, rows: currentPage * 100 });
      if (currentPage === 2) break;
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
