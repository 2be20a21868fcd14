import { describe, expect, test } from 'vitest';
import { readPage } from '../../service/page.ts';

const endpoint = { path: '/document/company/{companyId}', items: 'documents', total: 'totalDocuments' };
const read = (value: unknown, asked = 1) =>
  readPage(
    {
      text: typeof value === 'string' ? value : JSON.stringify(value),
      contentType: 'text/html; charset=utf-8',
    },
    endpoint,
    asked,
  );

const full = {
  totalDocuments: 201,
  perPage: 100,
  totalPages: 3,
  currentPage: 2,
  hasNext: true,
  hasPrevious: true,
  documents: [{ id: 'a' }, { id: 'b' }],
};

const without = (...fields: string[]) =>
  Object.fromEntries(Object.entries(full).filter(([field]) => !fields.includes(field)));

test('a page is read from a whole envelope', () => {
  const body = `  ${JSON.stringify(full)}\n`;
  expect(read(body, 2)).toEqual({
    body,
    itemsKey: 'documents',
    items: full.documents,
    ids: ['a', 'b'],
    count: 2,
    currentPage: 2,
    totalPages: 3,
    total: 201,
    hasNext: true,
    hasExplicitEnd: true,
  });
});

const empty = { totalDocuments: 0, perPage: 100, totalPages: 0, currentPage: 0, documents: [] };
const ids =
  '{"id": 1, "documents": [{"id": 90071992547409931234}, {"id": 12.50}, {"id": "a"}, {}, null, 5, {"id": null}]}';
const onlyPage = {
  itemsKey: null,
  ids: ['a'],
  currentPage: 1,
  total: 1,
  hasNext: false,
  hasExplicitEnd: true,
};
const bills = { ...without('documents'), bills: [{ id: 'x' }] };

test.each<[what: string, value: unknown, page: object]>([
  ['a bare array, which is the only page, whichever was requested', [{ id: 'a' }], onlyPage],
  [
    'hasNext false before the last page',
    { ...full, hasNext: false },
    { hasNext: false, hasExplicitEnd: true },
  ],
  ['hasNext true on the last page', { ...full, hasNext: true, totalPages: 1 }, { hasNext: true }],
  ['page 0 of 0', empty, { currentPage: 1, count: 0, total: 0, hasNext: false }],
  ['a total of another name', { ...without('totalDocuments'), totalBills: 9 }, { total: 9 }],
  ['a total of its own name', { ...without('totalDocuments'), total: 9 }, { total: 9 }],
  ['two totals', { ...without('totalDocuments'), totalBills: 9, totalCharges: 3 }, { total: null }],
  ['a total that is a text', { ...full, totalDocuments: '201' }, { total: null }],
  ['records under another name', bills, { itemsKey: 'bills', ids: ['x'] }],
  ['ids of any kind', ids, { ids: ['90071992547409931234', '12.50', 'a', null, null, null, null] }],
  ['an id beyond a double', '[{"id": 9007199254740993}]', { ids: ['9007199254740993'] }],
  ['an id that Postgres cannot store', '[{"id": "a\\u0000b"}, {"id": "c"}]', { ids: [null, 'c'] }],
])('a page is read with %s', (_what, value, page) => {
  expect(read(value, 4)).toMatchObject(page);
});

describe('an answer that is not a page', () => {
  const array = 'expected an array "documents", got';
  test.each([
    ['another object', { detail: 'nothing here' }, `${array} 25 characters of text/html: it has no array`],
    ['two arrays of unknown names', { a: [], b: ['hush'], 'x 1': [] }, 'it has the arrays a, b'],
    ['records that are null', { documents: null }, 'it has no array'],
    ['a scalar', '7', `${array} 1 characters of text/html: it is not an object`],
    ['null', 'null', 'it is not an object'],
    [
      'a web page',
      '<html>\n<title>hush</title>',
      'expected JSON, got 26 characters of text/html: not JSON from character 0 on',
    ],
    ['an answer that goes wrong', '{"documents": [hush]}', 'not JSON from character 15 on'],
    ['an answer cut short', '{"documents": [{"note": "hush"},', 'cut short'],
    ['a text that JSON does not allow', '["hush\0"]', 'wrong inside one of its texts'],
    ['nothing at all', '', 'expected JSON, got an empty body'],
  ])('%s is SERVICE_ANSWER_UNREADABLE, without a quote', (_, value, message) => {
    expect(() => read(value)).toThrow(expect.objectContaining({ code: 'SERVICE_ANSWER_UNREADABLE' }));
    expect(() => read(value)).toThrow(message);
    expect(() => read(value)).not.toThrow(/hush|nothing here/);
  });

  test('is described by well-known content types, without any other text of the answer', () => {
    const parsing = (contentType: string | undefined) => () =>
      readPage({ text: '7', contentType }, endpoint, 1);
    expect(parsing('Application/JSON; charset=hush')).toThrow('of application/json: it');
    expect(parsing('application/hush')).toThrow('of an unknown type: it');
    expect(parsing(undefined)).toThrow('of no type: it');
  });
});
