import { expect, test } from 'vitest';
import { proxyFor } from '../../app/proxies.ts';
import { readSettings } from '../../app/settings.ts';

const https = { HTTPS_PROXY: 'http://secure.example:3128' };
const both = { ...https, HTTP_PROXY: 'http://plain.example:8080' };
const ways = (env: Readonly<Record<string, string>>, ...addresses: string[]) =>
  addresses.map((address) => proxyFor(address, readSettings(env).proxies)?.host);

test('each protocol has its proxy, and no other', () => {
  const addresses = ['https://service.example/v2.2', 'http://service.example/v2.2'];
  expect(ways({}, ...addresses)).toEqual([undefined, undefined]);
  expect(ways(https, ...addresses)).toEqual(['secure.example:3128', undefined]);
  expect(ways(both, ...addresses)).toEqual(['secure.example:3128', 'plain.example:8080']);
});

test('this machine is reached directly', () => {
  const here = ['http://localhost:1', 'http://127.0.0.1:2/v2.2', 'https://[::1]:3', 'http://127.9.9.9'];
  expect(ways({ ...both, NO_PROXY: 'service.example' }, ...here)).toEqual(here.map(() => undefined));
});

test.each([
  ['service.example', 'https://service.example/v2', true],
  ['Service.Example', 'https://service.example/v2', true],
  ['example', 'https://service.example/v2', true],
  ['.example', 'https://service.example/v2', true],
  ['*.example', 'https://service.example/v2', true],
  ['other, service.example', 'https://service.example/v2', true],
  ['other service.example', 'https://service.example/v2', true],
  ['*', 'https://service.example/v2', true],
  ['service.example:443', 'https://service.example/v2', true],
  ['service.example:8443', 'https://service.example:8443/v2', true],
  ['10.0.0.7', 'https://10.0.0.7/v2', true],
  ['10.0.0.0/8', 'https://10.1.2.3/v2', true],
  ['::1,fd00::/8', 'https://[fd00::7]/v2', true],
  ['[fd00::7]:8443', 'https://[fd00::7]:8443/v2', true],
  ['10.0.0.0/8', 'https://11.1.2.3/v2', false],
  ['10.0.0.0/8', 'https://[fd00::7]/v2', false],
  ['10.0.0.0/8', 'https://service.example/v2', false],
  ['service.example:8443', 'https://service.example/v2', false],
  ['ample', 'https://service.example/v2', false],
  ['v.service.example', 'https://service.example/v2', false],
  ['', 'https://service.example/v2', false],
])('NO_PROXY=%s: is %s direct? %s', (NO_PROXY, address, direct) => {
  expect(ways({ ...https, NO_PROXY }, address)).toEqual([direct ? undefined : 'secure.example:3128']);
});

test('lower-case names hold, before others', () => {
  const env = { ...https, https_proxy: 'lower.example:3128', no_proxy: 'near.example' };
  expect(ways(env, 'https://service.example', 'https://near.example')).toEqual([
    'lower.example:3128',
    undefined,
  ]);
});

test.each([
  'socks5://proxy.example:1080',
  'http://',
  'http://user:12/geheim@proxy.example:3128',
  'http://user:12#geheim@proxy.example:3128',
  'http://user:geheim%@proxy.example:3128',
])('%s is refused, and not quoted', (HTTPS_PROXY) => {
  const read = () => readSettings({ HTTPS_PROXY });
  expect(read).toThrow('HTTPS_PROXY has to be a URL, for example http://proxy.example:3128');
  expect(read).not.toThrow(/geheim|socks/);
});
