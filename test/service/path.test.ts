import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultEndpoints, type Endpoint } from '../../contract/endpoints.ts';
import { requestPath } from '../../service/client.ts';

const endpoint = (name: keyof typeof defaultEndpoints): Endpoint => {
  const entry = defaultEndpoints[name];
  if (entry === null) throw new Error(`no ${name}`);
  return entry;
};

describe('the path of a request', () => {
  test('contains the values of its placeholders and the page', () => {
    const path = requestPath({ endpoint: endpoint('documents'), params: { companyId: 'c1' }, page: 3 });
    expect(path).toBe('/document/company/c1?page=3');
  });

  test('of a single record has no page', () => {
    expect(requestPath({ endpoint: endpoint('document'), params: { id: 'd1' } })).toBe('/document/d1');
  });

  test('leaves out a parameter whose placeholder has no value', () => {
    const intervals = { endpoint: endpoint('intervals'), page: 1 };
    expect(requestPath({ ...intervals, params: { meterId: 'm', start: '2025-01-01T00:00:00.5' } })).toBe(
      '/interval/meter/m?startDate=2025-01-01T00%3A00%3A00.5&page=1',
    );
    expect(requestPath({ ...intervals, params: { meterId: 'm' } })).toBe('/interval/meter/m?page=1');
  });

  test('keeps every value as one segment that decodes to the value', () => {
    const value = fc
      .string({ unit: 'grapheme', minLength: 1 })
      .filter((text) => text !== '.' && text !== '..');
    fc.assert(
      fc.property(value, (id) => {
        const url = new URL(
          `http://service${requestPath({ endpoint: endpoint('document'), params: { id } })}`,
        );
        const segments = url.pathname.split('/');
        expect(segments.slice(0, 2)).toEqual(['', 'document']);
        expect(segments).toHaveLength(3);
        expect(decodeURIComponent(segments[2] ?? '')).toBe(id);
        expect(url.search).toBe('');
      }),
    );
  });

  test.each([undefined, '', '.', '..'])('is refused if a placeholder contains %j', (id) => {
    const params = id === undefined ? {} : { id };
    expect(() =>
      requestPath({ endpoint: endpoint('document'), params: params as Record<string, string> }),
    ).toThrow(expect.objectContaining({ code: 'SERVICE_REQUEST_REFUSED' }));
  });

  test('contains no lone surrogate', () => {
    expect(requestPath({ endpoint: endpoint('document'), params: { id: 'a\ud800' } })).toBe(
      '/document/a%EF%BF%BD',
    );
  });
});
