import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

/** The long list of faults, one after another: `npm run test:faults`. */
export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '../..'),
    include: ['test/faults/*.fault.ts'],
    // C21 needs a revision, and a file without a test fails.
    exclude: process.env.FAULTS_FROM === undefined ? ['test/faults/upgrade.fault.ts'] : [],
    globalSetup: ['test/support/stack.ts'],
    fileParallelism: false,
    hookTimeout: 300_000,
  },
});
