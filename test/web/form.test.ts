import { describe, expect, test } from 'vitest';
import { fromOwnPages, schemesBehindProxy } from '../../web/form.ts';

const host = '127.0.0.1:4000';

describe('a request that changes something', () => {
  test('is accepted from the portal’s own pages', () => {
    expect(fromOwnPages({ host, 'sec-fetch-site': 'same-origin', origin: 'http://127.0.0.1:4000' })).toBe(
      true,
    );
    expect(fromOwnPages({ host, origin: 'http://127.0.0.1:4000' })).toBe(true);
  });

  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['another port of this machine', { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:9999' }],
    [
      'another site that claims to be the portal',
      { 'sec-fetch-site': 'cross-site', origin: 'http://127.0.0.1:4000' },
    ],
    ['an address that somebody typed', { 'sec-fetch-site': 'none' }],
    ['an older browser on another site', { origin: 'https://evil.example' }],
    ['a sandboxed frame', { origin: 'null' }],
    ['a page at the same host with another scheme', { origin: 'https://127.0.0.1:4000' }],
    ['a page at the same host with a scheme of no web page', { origin: 'ftp://127.0.0.1:4000' }],
    ['a client that is not a browser', {}],
  ])('is refused from %s', (_from, headers) => {
    expect(fromOwnPages({ host, ...headers })).toBe(false);
  });
});

test('behind a proxy the scheme is the one that the proxy names, and either if it names none', () => {
  const page = { host: 'console.example', origin: 'https://console.example' };
  expect(schemesBehindProxy({})).toEqual(['http', 'https']);
  expect(schemesBehindProxy({ 'x-forwarded-proto': 'HTTPS, http' })).toEqual(['https']);
  expect(schemesBehindProxy({ 'x-forwarded-proto': 'gopher' })).toEqual(['http', 'https']);
  expect(fromOwnPages(page, ['https'])).toBe(true);
  expect(fromOwnPages(page, ['http', 'https'])).toBe(true);
  expect(fromOwnPages(page, ['http'])).toBe(false);
});
