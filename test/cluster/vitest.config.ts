import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

/** A Temporal of several processes, one test after another: `npm run test:cluster`. */
export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '../..'),
    include: ['test/cluster/*.cluster.ts'],
    globalSetup: ['test/support/stack.ts'],
    fileParallelism: false,
    hookTimeout: 300_000,
  },
});
