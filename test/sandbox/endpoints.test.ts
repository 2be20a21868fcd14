import { describe, expect, test } from 'vitest';
import { wrongWithAddress } from '../../sandbox/delivery/endpoints.ts';

describe('the address of an endpoint', () => {
  test.each([
    'https://example.com/webhooks',
    'http://127.0.0.1:8080/',
    'HTTPS://EXAMPLE.COM',
    'https://[::1]:9/x?y=z',
    'https://bücher.example/ü',
  ])('can be %s', (address) => {
    expect(wrongWithAddress(address)).toBeUndefined();
  });

  test.each([
    ['', 'Enter the address'],
    ['example.com/webhooks', 'Begin the address with https://'],
    ['/webhooks', 'Begin the address with https://'],
    ['javascript:alert(1)', 'Begin the address with https://'],
    ['ftp://example.com', 'not ftp://'],
    ['file:///etc/passwd', 'not file://'],
    ['https://', 'not a web address'],
    ['https://exa mple.com', 'not a web address'],
    ['https://example.com:99999', 'not a web address'],
    ['https://user@example.com', 'Leave out the user name'],
    ['https://:secret@example.com', 'Leave out the user name'],
    ['https://example.com/#part', 'from # on'],
    [`https://example.com/${'a'.repeat(2_048)}`, 'at most 2048 characters'],
  ])('cannot be %j', (address, words) => {
    expect(wrongWithAddress(address)).toContain(words);
  });
});
