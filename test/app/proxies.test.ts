import { expect, test } from 'vitest';
import { readSettings } from '../../app/settings/settings.ts';

test('lower-case names of proxy variables take precedence', () => {
  const env = {
    HTTPS_PROXY: 'http://upper.example:3128',
    https_proxy: 'lower.example:3128',
    no_proxy: 'near',
  };
  const { https, http, none } = readSettings(env).proxies;
  expect([https?.host, http, none]).toEqual(['lower.example:3128', undefined, 'near']);
});

test.each([
  'socks5://proxy.example:1080',
  'http://',
  'http://user:12/geheim@proxy.example:3128',
  'http://user:12#geheim@proxy.example:3128',
  'http://user:geheim%@proxy.example:3128',
])('%s is refused without being quoted', (HTTPS_PROXY) => {
  const read = () => readSettings({ HTTPS_PROXY });
  expect(read).toThrow('HTTPS_PROXY has to be a URL, for example http://proxy.example:3128');
  expect(read).not.toThrow(/geheim|socks/);
});
