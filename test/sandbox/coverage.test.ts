import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { readCoverage } from './coverage.ts';

it('every statement of the service’s document has a test, and tests name no other', async () => {
  const { missing, unknown } = await readCoverage(dirname(import.meta.dirname));
  expect({ missing, unknown }).toEqual({ missing: [], unknown: [] });
});
