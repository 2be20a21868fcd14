import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { readCoverage } from './coverage.ts';

test('every statement of the service’s document has a test, and tests name no other', async () => {
  const { missing, unknown } = await readCoverage(dirname(import.meta.dirname));
  expect({ missing, unknown }).toEqual({ missing: [], unknown: [] });
});
