import { expect, test } from 'vitest';
import { createPageCache } from '../../sandbox/api/page-cache.ts';

const page = (size: number) => ({ companyId: 'a', asOf: 0, body: Buffer.alloc(size) });

test('keeps the newest pages within its limit, and counts even small pages', () => {
  const cache = createPageCache(100_000);
  const keys = Array.from({ length: 1_000 }, (_, n) => `/usage/meter/x?startDate=${n}`);
  for (const key of keys) cache.keep(key, page(1));
  const kept = keys.filter((key) => cache.find(key) !== undefined);
  expect(kept.length).toBeGreaterThan(50);
  expect(kept.length).toBeLessThan(200);
  expect(kept).toEqual(keys.slice(-kept.length));
  cache.keep('large', page(50_000));
  expect(cache.find('large')).toBeUndefined();
});
