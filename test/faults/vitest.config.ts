import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

/** The long list of faults, one after another: `npm run test:faults`. */
export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '../..'),
    include: ['test/faults/*.fault.ts'],
    globalSetup: ['test/support/stack.ts'],
    fileParallelism: false,
    hookTimeout: 300_000,
  },
});
