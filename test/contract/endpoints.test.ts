import { describe, expect, test } from 'vitest';
import { endpointOverrides } from '../../contract/endpoint-file.ts';
import { defaultEndpoints, endpointNames } from '../../contract/endpoints.ts';

const wrongWith = (file: unknown): string[] =>
  endpointOverrides
    .safeParse(file)
    .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];

describe('the defaults', () => {
  test('name every endpoint, and are a valid endpoint file', () => {
    expect(Object.keys(defaultEndpoints)).toEqual([...endpointNames]);
    expect(endpointOverrides.parse(defaultEndpoints)).toEqual(defaultEndpoints);
  });
});

describe('overrides', () => {
  test('can be any of the entries, each complete, or null for an endpoint that does not exist', () => {
    const file = { document: null, meters: { path: '/v9/meters', query: { of: '{companyId}' } } };
    expect(endpointOverrides.parse(file)).toEqual(file);
    expect(endpointOverrides.parse({})).toEqual({});
  });

  test.each([
    ['an entry that does not exist', { invoices: { path: '/invoice' } }, 'invoices'],
    ['a path that does not begin at the base address', { meters: { path: 'meter' } }, 'meters.path'],
    ['an entry without path', { meters: { items: 'meters' } }, 'meters.path'],
    ['a misspelt key, which would go unnoticed', { meters: { path: '/m', totals: 'n' } }, 'totals'],
    [
      'a query whose value is not a text',
      { meters: { path: '/m', query: { limit: 100 } } },
      'meters.query.limit',
    ],
    ['an entry that is only a path', { meters: '/meter' }, 'meters'],
    ['a list', [], ''],
    ['null', null, ''],
  ])('are refused: %s', (_, file, named) => {
    const wrong = wrongWith(file);
    expect(wrong).not.toEqual([]);
    expect(wrong.join('\n')).toContain(named);
  });

  test('with keys of prototypes have no effect', () => {
    const parsed = endpointOverrides.safeParse(JSON.parse('{"__proto__":{"meters":null}}'));
    expect({ ...defaultEndpoints, ...parsed.data }.meters).toEqual(defaultEndpoints.meters);
    expect({}).not.toHaveProperty('meters');
  });
});
