import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

/** `npm run test:cluster` tests a Temporal of several processes, one test after another. */
export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '../..'),
    include: ['test/cluster/*.cluster.ts'],
    globalSetup: ['test/support/stack.ts'],
    fileParallelism: false,
    hookTimeout: 300_000,
  },
});
