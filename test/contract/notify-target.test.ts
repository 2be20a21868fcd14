import { expect, test } from 'vitest';
import { parseTarget } from '../../contract/notify-target.ts';

test.each([
  [
    'slack+https://hooks.example/services/T0/B0/xyz',
    'slack hooks.example',
    'https://hooks.example/services/T0/B0/xyz',
  ],
  ['json+http://10.0.0.1:8080/in?key=1', 'json 10.0.0.1:8080', 'http://10.0.0.1:8080/in?key=1'],
  [
    'alertmanager+http://am.example:9093',
    'alertmanager am.example:9093',
    'http://am.example:9093/api/v2/alerts',
  ],
  [
    'alertmanager+https://am.example/base/',
    'alertmanager am.example',
    'https://am.example/base/api/v2/alerts',
  ],
  ['pagerduty://abc123', 'pagerduty events.pagerduty.com', 'https://events.pagerduty.com/v2/enqueue'],
  [
    'pagerduty://abc123@events.eu.pagerduty.com',
    'pagerduty events.eu.pagerduty.com',
    'https://events.eu.pagerduty.com/v2/enqueue',
  ],
])('%s leads to its address, under a name without its secrets', (text, name, url) => {
  const target = parseTarget(text);
  expect(target).toMatchObject({ url });
  expect(target?.name).toMatch(new RegExp(`^${name} [0-9a-f]{6}$`));
  expect(target?.name).not.toMatch(/xyz|abc123|key/);
});

test.each([
  '',
  'https://hooks.example',
  'slack://x',
  'mail+https://x',
  'json+ftp://x',
  'json+https://',
  'pagerduty://',
  'pagerduty://a b',
])('%j is no target', (text) => {
  expect(parseTarget(text)).toBeUndefined();
});

test('two addresses on one host have two names', () => {
  const [a, b] = ['slack+https://hooks.example/a', 'slack+https://hooks.example/b'].map(parseTarget);
  expect(a?.name).not.toBe(b?.name);
});
